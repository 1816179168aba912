package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// interpolation is an input in a component.
var interpolation = regexp.MustCompile(`\$\[\[\s*inputs\.([\w-]+)\s*\]\]`)

// job is a job of GitLab CI.
type job struct {
	Stage, Image string
	Variables    map[string]string
	Script       []string
	Artifacts    struct {
		When    string
		Reports map[string]string
	}
}

// parseComponent reads the job of a component.
func parseComponent(text []byte, given map[string]string) (job, error) {
	header, body, two := bytes.Cut(text, []byte("\n---\n"))
	if !two {
		return job{}, errors.New("a component has a header and a body")
	}
	var component struct {
		Spec struct{ Inputs map[string]input }
	}
	if err := yaml.Unmarshal(header, &component); err != nil {
		return job{}, err
	}
	inputs, err := valuesOf(component.Spec.Inputs, given, func(i input) bool { return i.Default == nil })
	if err != nil {
		return job{}, err
	}
	filled, err := fill(string(body), interpolation, inputs)
	if err != nil {
		return job{}, err
	}
	jobs := map[string]job{}
	if err := yaml.Unmarshal([]byte(filled), &jobs); err != nil {
		return job{}, err
	}
	one, found := jobs[inputs["job"]]
	if !found || len(jobs) != 1 {
		return job{}, fmt.Errorf("the component has %d jobs, and not one that is called %s", len(jobs), inputs["job"])
	}
	return one, nil
}

// CheckGitLab checks the inputs that a pipeline sets.
func CheckGitLab(text []byte, given map[string]string) error {
	_, err := parseComponent(text, given)
	return err
}

// GitLab runs the job of a component. The report of the job is the summary of the outcome.
func GitLab(ctx context.Context, text []byte, j Job) (Outcome, error) {
	one, err := parseComponent(text, j.Inputs)
	if err != nil {
		return Outcome{}, err
	}
	var env []string
	for name, value := range one.Variables {
		env = append(env, name+"="+value)
	}
	var o Outcome
	if o.Code, o.Log, err = j.run(ctx, strings.Join(one.Script, "\n"), append(env, "TMPDIR="+j.Temp), "sh", "-e", "-s"); err != nil {
		return o, err
	}
	report, err := os.ReadFile(filepath.Join(j.Dir, one.Artifacts.Reports["junit"]))
	if err == nil && one.Artifacts.When == "always" {
		o.Summary = string(report)
	}
	return o, nil
}
