package main

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"strings"
)

// event is a line of go test -json, as `go doc test2json` describes it.
type event struct {
	Action, Test, Output string
	Key, Value           string
}

// results has the outcomes of the tests of one package.
type results struct {
	outcomes   map[string]string // pass, fail or skip, by test
	attributes map[string]string
	output     map[string]string // of the tests that failed, and under "" of the package
}

// tests returns the outcomes of the tests, without the outcome of the package.
func (r results) tests() map[string]string {
	tests := maps.Clone(r.outcomes)
	delete(tests, "")
	return tests
}

// readResults reads the output of go test -json.
func readResults(from io.Reader) (results, error) {
	r := results{outcomes: map[string]string{}, attributes: map[string]string{}, output: map[string]string{}}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Action == "" {
			r.output[""] += lines.Text() + "\n"
			continue
		}
		switch e.Action {
		case "output", "build-output":
			r.output[e.Test] += e.Output
		case "attr":
			r.attributes[e.Key] = strings.TrimSpace(e.Value)
		case "pass", "fail", "skip":
			r.outcomes[e.Test] = e.Action
			if e.Action == "pass" && e.Test != "" {
				delete(r.output, e.Test)
			}
		}
	}
	return r, lines.Err()
}
