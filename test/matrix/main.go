package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// pagePath is the page with the table, from the root of the repository.
const pagePath = "docs/reference/versions.md"

func main() {
	names := flag.String("versions", "", "minor versions, as in \"1.33 1.34\"; empty means all")
	root := flag.String("root", ".", "the repository")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *root, strings.Fields(*names), os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "matrix: %v\n", err)
		os.Exit(1)
	}
}

// errBad means that a version does not build, or that tests failed.
var errBad = errors.New("not every version is good")

func run(ctx context.Context, root string, names []string, out io.Writer) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	all, err := findVersions(root)
	if err != nil {
		return err
	}
	chosen, err := choose(all, names)
	if err != nil {
		return err
	}
	p, err := readPage(filepath.Join(root, pagePath))
	if err != nil {
		return err
	}
	if err := p.write(all); err != nil { // with a row for each version, before hours of work
		return err
	}
	var bad []string
	for _, v := range chosen {
		r := try(ctx, root, v, out)
		if ctx.Err() != nil {
			return context.Cause(ctx) // the result of an interrupted run is not a result of the version
		}
		p.rows[v.exact] = r
		if err := p.write(all); err != nil { // after each version, so that an interruption loses one
			return err
		}
		if !r.good() {
			bad = append(bad, v.exact)
		}
	}
	fmt.Fprintf(out, "matrix: wrote %s\n", pagePath)
	if len(bad) > 0 {
		return fmt.Errorf("%w: see the rows of %s in %s", errBad, strings.Join(bad, ", "), pagePath)
	}
	return nil
}

// try builds a version and runs the tests against it.
func try(ctx context.Context, root string, v version, out io.Writer) row {
	began := time.Now()
	r := emptyRow(v.exact)
	if err := v.compile(ctx, out); err != nil {
		fmt.Fprintf(out, "matrix: Kubernetes %s does not build: %v\n", v.exact, err)
		r.builds = "**does not build**: " + err.Error()
		return r
	}
	r.builds = "yes"
	built := time.Now()
	for _, folder := range folders() {
		found, err := test(ctx, root, v, folder)
		if err != nil {
			found.output[""] += err.Error()
		}
		for i, c := range columns {
			if c.folder != folder {
				continue
			}
			r.cells[i] = c.cell(found)
			fmt.Fprintf(out, "matrix: Kubernetes %s: %s: %s\n", v.exact, c.title, r.cells[i])
		}
		for _, name := range failures(found) {
			fmt.Fprintf(out, "%s", found.output[name])
		}
	}
	fmt.Fprintf(out, "matrix: Kubernetes %s: built in %v, tested in %v\n", v.exact, built.Sub(began).Round(time.Second), time.Since(built).Round(time.Second))
	return r
}

// failures returns the tests with output to print. The name "" means the package, which has no result if it does not compile.
func failures(r results) []string {
	var names []string
	for name := range r.output {
		if name == "" && len(r.outcomes) > 1 || name != "" && r.outcomes[name] == "skip" {
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// test runs the tests of one package. It returns failed tests as results, and not as an error.
func test(ctx context.Context, root string, v version, folder string) (results, error) {
	c := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-vet=off", "-timeout=20m", "-run", pattern(folder), "./"+folder)
	c.Dir, c.Env = root, append(os.Environ(), "KUBEBUILDER_ASSETS="+v.assets, "GODWIT_MATRIX=1")
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // go test then ends its servers
	stdout, err := c.StdoutPipe()
	if err != nil {
		return results{output: map[string]string{}}, err
	}
	var stderr strings.Builder
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		return results{output: map[string]string{}}, err
	}
	found, readErr := readResults(stdout)
	var exit *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &exit) {
		return found, err
	}
	found.output[""] += stderr.String()
	return found, readErr
}
