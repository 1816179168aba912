// Command times reads the output of go test -json, and prints the output of go test
// without that flag, and then a table of the packages, the longest first: the time of
// each, the number of its tests, and its longest test.
//
//	go test -json ./... | go run ./test/times
//
// It also prints lines that are not JSON, such as those of make. The exit code is 1 if a
// test, a package or a build failed.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	report := newReport(os.Stdout)
	if err := report.read(os.Stdin); err != nil {
		fmt.Fprintf(os.Stderr, "times: %v\n", err)
		os.Exit(1)
	}
	if err := report.writeTable(os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "times: %v\n", err)
		os.Exit(1)
	}
	if report.failed {
		os.Exit(1)
	}
}

// event is a line of go test -json, as `go doc test2json` describes it.
type event struct {
	Action  string
	Package string
	Test    string  // empty for an event of the package
	Elapsed float64 // in seconds
	Output  string
}

// packageTime is one package's row of the table. For a package that is tested twice, in
// the workspace and outside, it is the sum of both.
type packageTime struct {
	name        string
	took        time.Duration
	tests       int
	longest     string
	longestTook time.Duration
}

// report collects packageTimes, and prints the output of go test.
type report struct {
	out      io.Writer
	packages map[string]*packageTime
	pending  map[string]*strings.Builder // the output of each running test
	failed   bool
}

func newReport(out io.Writer) *report {
	return &report{out: out, packages: map[string]*packageTime{}, pending: map[string]*strings.Builder{}}
}

func (r *report) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			r.add(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the output of go test: %w", err)
		}
	}
}

func (r *report) add(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
		r.print(line)
		return
	}
	r.failed = r.failed || e.Action == "fail" || e.Action == "build-fail"
	switch {
	case e.Action == "build-output":
		r.print(e.Output)
	case e.Test == "":
		r.addPackage(e)
	default:
		r.addTest(e)
	}
}

func (r *report) addPackage(e event) {
	switch e.Action {
	case "output":
		if e.Output != "PASS\n" {
			r.print(e.Output)
		}
	case "pass", "fail":
		r.packageTime(e.Package).took += seconds(e.Elapsed)
	}
}

// addTest prints the output of a test once the test has failed, as go test does.
func (r *report) addTest(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		if r.pending[key] == nil {
			r.pending[key] = &strings.Builder{}
		}
		r.pending[key].WriteString(e.Output)
		return
	case "fail":
		if text := r.pending[key]; text != nil {
			r.print(text.String())
		}
	case "pass", "skip":
	default:
		return
	}
	delete(r.pending, key)
	if strings.Contains(e.Test, "/") {
		return // the time of a subtest is part of its test's time
	}
	p := r.packageTime(e.Package)
	p.tests++
	if took := seconds(e.Elapsed); took > p.longestTook {
		p.longest, p.longestTook = e.Test, took
	}
}

func (r *report) packageTime(name string) *packageTime {
	if r.packages[name] == nil {
		r.packages[name] = &packageTime{name: name}
	}
	return r.packages[name]
}

// print returns no error: if it fails, no program reads the output.
func (r *report) print(text string) { _, _ = io.WriteString(r.out, text) }

func (r *report) writeTable(out io.Writer) error {
	var all []*packageTime
	var total time.Duration
	for _, p := range r.packages {
		all, total = append(all, p), total+p.took
	}
	slices.SortFunc(all, func(a, b *packageTime) int {
		return cmp.Or(cmp.Compare(b.took, a.took), strings.Compare(a.name, b.name))
	})
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nPACKAGE\tSECONDS\tTESTS\tLONGEST TEST\tSECONDS")
	for _, p := range all {
		fmt.Fprintf(table, "%s\t%.1f\t%d\t%s\t%.1f\n", p.name, p.took.Seconds(), p.tests, p.longest, p.longestTook.Seconds())
	}
	fmt.Fprintf(table, "%d packages, one after another\t%.1f\n", len(all), total.Seconds())
	return table.Flush()
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
