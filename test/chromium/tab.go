package chromium

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

const (
	// pictures is a folder for screenshots; none without it.
	pictures = "GODWIT_SCREENSHOTS"
	// axe is where tools/chromium/install.sh puts axe-core, from a package three folders below the repository.
	axe = "../../../bin/axe/*/axe.min.js"
	// axeRules is how many rules a page with content keeps at least. A page with fewer was not read.
	axeRules = 10
)

// Tests are the tests of some pages.
type Tests struct {
	// Target of the Makefile runs the tests, and sets the environment variable Switch, without which they are skipped.
	Target, Switch string
	// Timeout ends what a tab does.
	Timeout time.Duration
	// Width and Height are those of a window whose options have none.
	Width, Height int
}

// SkipUnwanted skips a test that the target does not run.
func (s Tests) SkipUnwanted(t *testing.T) {
	t.Helper()
	if os.Getenv(s.Switch) == "" {
		t.Skip("only run by " + s.Target)
	}
}

// Start starts a browser that ends with the test, or skips the test.
func (s Tests) Start(t *testing.T) *Browser {
	t.Helper()
	s.SkipUnwanted(t)
	b, err := Start(t.Context())
	if errors.Is(err, ErrMissing) && !required() {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return b
}

// required reports whether a missing program is a failure, as in CI.
func required() bool { return os.Getenv("CI") == "true" }

// Tab is a page of a test, which an error ends.
type Tab struct {
	*Page
	t   *testing.T
	ctx context.Context //nolint:containedctx // a tab lives as long as its test
}

// Open opens a file in a tab of a browser.
func (s Tests) Open(t *testing.T, b *Browser, file string, o Options) Tab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.Timeout)
	t.Cleanup(cancel)
	if o.Width == 0 {
		o.Width, o.Height = s.Width, s.Height
	}
	page, err := b.Open(ctx, file, o)
	if err != nil {
		t.Fatal(err)
	}
	return Tab{page, t, ctx}
}

func (p Tab) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// Evaluate is [Page.Evaluate].
func (p Tab) Evaluate(expression string, value any) {
	p.t.Helper()
	p.check(p.Page.Evaluate(p.ctx, expression, value))
}

// Number is the value of an expression.
func (p Tab) Number(expression string) (n int) {
	p.t.Helper()
	p.Evaluate(expression, &n)
	return n
}

// Text is the value of an expression.
func (p Tab) Text(expression string) (s string) {
	p.t.Helper()
	p.Evaluate(expression, &s)
	return s
}

// Await waits until an expression is true.
func (p Tab) Await(what, expression string) {
	p.t.Helper()
	for range 200 {
		var is bool
		// While the page changes to another one, there is none to ask.
		if err := p.Page.Evaluate(p.ctx, expression+" ? true : false", &is); err == nil && is {
			return
		}
		select {
		case <-p.ctx.Done():
			p.t.Fatalf("%v, and still not: %s", p.ctx.Err(), what)
		case <-time.After(50 * time.Millisecond):
		}
	}
	p.t.Fatalf("after 10 s still not: %s", what)
}

// Press is [Page.Press].
func (p Tab) Press(keys ...string) {
	p.t.Helper()
	p.check(p.Page.Press(p.ctx, keys...))
}

// Navigate is [Page.Navigate].
func (p Tab) Navigate(file string) {
	p.t.Helper()
	p.check(p.Page.Navigate(p.ctx, file))
}

// Resize is [Page.Resize].
func (p Tab) Resize(width, height int) {
	p.t.Helper()
	p.check(p.Page.Resize(p.ctx, width, height))
}

// Picture writes a screenshot where make is asked for pictures.
func (p Tab) Picture(name string) {
	p.t.Helper()
	if folder := os.Getenv(pictures); folder != "" {
		p.check(p.Screenshot(p.ctx, filepath.Join(folder, name+".png")))
	}
}

// Axe is the script of axe-core. Without it, the test is skipped.
func Axe(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(axe)
	if err != nil || len(found) == 0 {
		if required() {
			t.Fatalf("no axe-core at %s: %v", axe, err)
		}
		t.Skipf("no axe-core at %s: tools/chromium/install.sh gets it from npm", axe)
	}
	script, err := os.ReadFile(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// Violations are what [Axe] finds on the page, of the given impacts or, without any, of all.
func (p Tab) Violations(axe string, impacts ...string) ([]string, error) {
	p.t.Helper()
	p.Evaluate(axe+"\n;0", nil)
	const run = `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify({passes: r.passes.length, violations: r.violations.map(v => ({impact: v.impact,
		text: v.id + ": " + v.help + ": " + v.nodes.length + " times: " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + " " + n.failureSummary.slice(0, 200)).join(" | ")}))}))`
	var result struct {
		Passes     int `json:"passes"`
		Violations []struct {
			Impact string `json:"impact"`
			Text   string `json:"text"`
		} `json:"violations"`
	}
	if err := json.Unmarshal([]byte(p.Text(run)), &result); err != nil {
		return nil, fmt.Errorf("read the result of axe-core: %w", err)
	}
	if result.Passes < axeRules {
		return nil, fmt.Errorf("axe-core finds %d rules kept, want %d or more", result.Passes, axeRules)
	}
	var texts []string
	for _, v := range result.Violations {
		if len(impacts) == 0 || slices.Contains(impacts, v.Impact) {
			texts = append(texts, v.Text)
		}
	}
	return texts, nil
}
