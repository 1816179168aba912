package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// action is a composite action.
type action struct {
	Inputs  map[string]input
	Outputs map[string]struct{ Value string }
	Runs    struct {
		Using string
		Steps []step
	}
}

type step struct {
	ID, If, Shell, Run, Uses string
	Env, With                map[string]string
}

var (
	// expression is an expression of GitHub: the action has only names.
	expression = regexp.MustCompile(`\$\{\{\s*([\w.-]+)\s*\}\}`)
	// condition is the only form of a condition that the action has.
	condition = regexp.MustCompile(`^([\w.-]+) == '([^']*)'$`)
)

// uploader is the action that shows SARIF in code scanning.
const uploader = "github/codeql-action/upload-sarif@"

// parseAction reads an action, and returns the values of its inputs.
func parseAction(text []byte, given map[string]string) (action, map[string]string, error) {
	var a action
	if err := yaml.Unmarshal(text, &a); err != nil {
		return a, nil, err
	}
	if a.Runs.Using != "composite" {
		return a, nil, fmt.Errorf("the action is not composite, but %q", a.Runs.Using)
	}
	inputs, err := valuesOf(a.Inputs, given, func(i input) bool { return i.Required })
	return a, inputs, err
}

// CheckGitHub checks the inputs that a workflow sets.
func CheckGitHub(text []byte, given map[string]string) error {
	_, _, err := parseAction(text, given)
	return err
}

// GitHub runs an action that a workflow names by ref.
func GitHub(ctx context.Context, text []byte, ref string, j Job) (Outcome, error) {
	a, inputs, err := parseAction(text, j.Inputs)
	if err != nil {
		return Outcome{}, err
	}
	values := map[string]string{"github.action_ref": ref}
	for name, value := range inputs {
		values["inputs."+name] = value
	}
	var o Outcome
	for _, s := range a.Runs.Steps {
		if err := j.step(ctx, s, values, &o); err != nil || o.Code != 0 {
			return o, err
		}
	}
	for name, output := range a.Outputs {
		if _, err := fill(output.Value, expression, values); err != nil {
			return o, fmt.Errorf("output %s: %w", name, err)
		}
	}
	return o, nil
}

// step runs a step, and adds its outputs to the values.
func (j Job) step(ctx context.Context, s step, values map[string]string, o *Outcome) error {
	if s.If != "" {
		words := condition.FindStringSubmatch(s.If)
		if words == nil {
			return fmt.Errorf("the condition %q has another form than NAME == 'VALUE'", s.If)
		}
		if values[words[1]] != words[2] {
			return nil
		}
	}
	if s.Uses != "" {
		return j.upload(s, values, o)
	}
	if s.Shell != "bash" {
		return fmt.Errorf("a step of a composite action needs a shell, and this has %q", s.Shell)
	}
	file := func(name string) string { return filepath.Join(j.Temp, name) }
	env := []string{"RUNNER_TEMP=" + j.Temp, "GITHUB_PATH=" + file("path"), "GITHUB_OUTPUT=" + file("output"), "GITHUB_STEP_SUMMARY=" + file("summary")}
	for name, text := range s.Env {
		value, err := fill(text, expression, values)
		if err != nil {
			return err
		}
		env = append(env, name+"="+value)
	}
	paths, _ := os.ReadFile(file("path")) // written by a step before, or by none
	env = append(env, "PATH="+strings.Join(append(strings.Fields(string(paths)), os.Getenv("PATH")), string(filepath.ListSeparator)))
	code, log, err := j.run(ctx, s.Run, env, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-s")
	o.Code, o.Log = code, o.Log+log
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(file("summary")); err == nil {
		o.Summary = string(text)
	}
	outputs, _ := os.ReadFile(file("output"))
	for line := range strings.Lines(string(outputs)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values["steps."+s.ID+".outputs."+name] = value
	}
	return os.RemoveAll(file("output"))
}

// upload records the file that code scanning would get.
func (j Job) upload(s step, values map[string]string, o *Outcome) error {
	if !strings.HasPrefix(s.Uses, uploader) {
		return fmt.Errorf("the action %s is not known", s.Uses)
	}
	name, err := fill(s.With["sarif_file"], expression, values)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(j.Dir, name))
	o.Uploaded = string(text)
	return err
}
