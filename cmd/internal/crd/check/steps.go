package check

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator/bridge"
	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/internal/quote"
)

// decideSteps decides the steps and adds their findings to the check, except for reasons that the check already has. A finding
// that blocks the steps does not change the result of the check.
func (r *release) decideSteps() error {
	var err error
	r.steps, err = bridge.For(bridge.Facts{Live: r.live, Next: r.CRD, Between: r.between, Answers: r.answers})
	if err != nil {
		return err
	}
	var findings []releasecheck.Finding
	for _, f := range r.steps.Findings {
		if slices.ContainsFunc(r.check.Reasons, func(there releasecheck.Finding) bool {
			return there.Reason == f.Reason && (there.Severity == godwit.Blocks || f.Severity != godwit.Blocks)
		}) {
			continue
		}
		result := releasecheck.Safe
		if f.Severity == godwit.Blocks {
			result = r.check.Result
		}
		findings = append(findings, releasecheck.Finding{Result: result, Finding: f})
	}
	r.check = r.check.With(findings...)
	return nil
}

// withResult returns the names of the CRDs whose steps have a result.
func withResult(all []release, result bridge.Result) []string {
	var names []string
	for _, r := range all {
		if r.steps.Result == result {
			names = append(names, r.Name)
		}
	}
	return names
}

// unread is the result of the steps if the cluster's CRD could not be read.
const unread bridge.Result = ""

// writeSteps writes the steps of all CRDs. It writes nothing if the steps of one CRD are unknown or Blocked, or if no CRD needs
// steps.
func (o *options) writeSteps(all []release) (written bool, err error) {
	if o.steps == "" || len(withResult(all, unread)) > 0 || len(withResult(all, bridge.Blocked)) > 0 || len(withResult(all, bridge.Ready)) == 0 {
		return false, nil
	}
	return true, writeFiles(o.steps, all, o.Program, o.Remedies().Cluster)
}

// stepsSentence reports whether the steps were written, and why not.
func (o *options) stepsSentence(all []release, written bool) string {
	unread, blocked := withResult(all, unread), withResult(all, bridge.Blocked)
	switch {
	case written:
		return "the steps are in " + o.steps + "; run them with: " + o.runSteps()
	case len(blocked) > 0:
		return "nothing was written to " + o.steps + ": no steps lead to the next release of " + strings.Join(blocked, ", ")
	case len(unread) > 0:
		return "nothing was written to " + o.steps + ": the cluster's CRD could not be read: " + strings.Join(unread, ", ")
	}
	return "nothing was written to " + o.steps + ": no steps are needed"
}

func (o *options) runSteps() string { return "sh " + quote.Shell(filepath.Join(o.steps, script)) }

// nextCommand returns the command that runs the steps, or the command that writes them first.
func (o *options) nextCommand(written bool) godwit.Fix {
	if written {
		return godwit.Do("run the steps: " + o.runSteps())
	}
	words := []string{o.Program, "crd check"}
	for _, f := range o.next.Files {
		words = append(words, "-f "+quote.Shell(f))
	}
	if o.next.Recursive {
		words = append(words, "-R")
	}
	for _, a := range o.answers.Texts {
		words = append(words, "--answer="+quote.Shell(a))
	}
	if !o.references {
		words = append(words, "--references=false")
	}
	return godwit.Do("write the steps: " + strings.Join(append(words, "--steps=DIR"), " ") + o.Remedies().Cluster)
}
