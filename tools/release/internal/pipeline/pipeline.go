package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// Job is the surroundings of a job.
type Job struct {
	// Dir is the checked out repository.
	Dir string
	// Temp is an empty folder for the job alone.
	Temp string
	// Env is added to the environment of the scripts.
	Env []string
	// Inputs are those that the user sets.
	Inputs map[string]string
}

// Outcome is what a job left.
type Outcome struct {
	// Code is the exit code of the step that failed; 0 if none did.
	Code int
	// Log is what the scripts printed.
	Log string
	// Uploaded is the file for code scanning; empty if the job did not upload one.
	Uploaded string
	// Summary is the page that GitHub shows of the job.
	Summary string
}

// input is an input as the action and the component declare it.
type input struct {
	Default  *string
	Required bool
	Options  []string
}

// valuesOf returns the values of all inputs.
func valuesOf(declared map[string]input, given map[string]string, required func(input) bool) (map[string]string, error) {
	all := map[string]string{}
	for name, one := range declared {
		value, set := given[name]
		if !set && one.Default != nil {
			value = *one.Default
		}
		if !set && required(one) {
			return nil, fmt.Errorf("the input %s is required", name)
		}
		if len(one.Options) > 0 && !slices.Contains(one.Options, value) {
			return nil, fmt.Errorf("the input %s is %q, and not one of %v", name, value, one.Options)
		}
		all[name] = value
	}
	for name := range given {
		if _, known := declared[name]; !known {
			return nil, fmt.Errorf("no input is called %s", name)
		}
	}
	return all, nil
}

// fill replaces expressions by values. An unknown name is an error: the runner would silently leave it empty.
func fill(text string, expression *regexp.Regexp, values map[string]string) (string, error) {
	var unknown error
	filled := expression.ReplaceAllStringFunc(text, func(match string) string {
		name := expression.FindStringSubmatch(match)[1]
		value, known := values[name]
		if !known {
			unknown = fmt.Errorf("%s is not known", match)
		}
		return value
	})
	return filled, unknown
}

// run runs a script, and returns its exit code.
func (j Job) run(ctx context.Context, script string, env []string, shell ...string) (int, string, error) {
	program := exec.CommandContext(ctx, shell[0], shell[1:]...)
	program.Dir, program.Stdin = j.Dir, strings.NewReader(script)
	program.Env = append(append(os.Environ(), j.Env...), env...)
	var out bytes.Buffer
	program.Stdout, program.Stderr = &out, &out
	err := program.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return exit.ExitCode(), out.String(), nil
	}
	return 0, out.String(), err
}
