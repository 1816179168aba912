package site_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/godwit-dev/godwit/test/chromium"
)

const (
	// wanted is set by make test-docs.
	wanted = "GODWIT_TEST_DOCS"
	// pictures is a folder for screenshots; none without it.
	pictures = "GODWIT_SCREENSHOTS"
	// axe is where tools/chromium/install.sh puts axe-core.
	axe = "../../../bin/axe/*/axe.min.js"
	// built is where make docs puts what it builds without VERSION.
	built = "../../../bin/site/main"
	// python runs tools/docs/versions.py.
	python = "../../../bin/mkdocs/bin/python"
)

// Sizes of windows: of a desktop, and of a telephone.
const (
	wide, high   = 1440, 900
	narrow, tall = 390, 844
)

// main are the pages that a reader is most likely to see, and those with what is hard to show: tables, code, diagrams.
var main = []string{
	"index.html", "guides/index.html", "guides/drop-an-api-version.html", "guides/embed.html", "tutorials/drop-an-api-version.html", "tutorials/index.html",
	"reference/cli.html", "reference/events.html", "reference/hub-protocol.html", "reference/chart.html", "reference/surface.html",
	"explanation/architecture.html", "adr/index.html", "adr/0015-old-revisions.html", "project/changelog.html",
}

// tab is an open page.
type tab struct {
	*chromium.Page
	t   *testing.T
	ctx context.Context
}

// start starts a browser and opens a page in it, or skips the test.
func start(t *testing.T, page string, o chromium.Options) tab {
	t.Helper()
	if os.Getenv(wanted) == "" {
		t.Skip("a browser is only started by make test-docs")
	}
	b, err := chromium.Start(t.Context())
	if errors.Is(err, chromium.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	t.Cleanup(cancel)
	if o.Width == 0 {
		o.Width, o.Height = wide, high
	}
	p, err := b.Open(ctx, page, o)
	if err != nil {
		t.Fatal(err)
	}
	return tab{p, t, ctx}
}

func (p tab) text(expression string) (s string) {
	p.t.Helper()
	p.evaluate(expression, &s)
	return s
}

func (p tab) number(expression string) (n int) {
	p.t.Helper()
	p.evaluate(expression, &n)
	return n
}

func (p tab) evaluate(expression string, value any) {
	p.t.Helper()
	if err := p.Evaluate(p.ctx, expression, value); err != nil {
		p.t.Fatal(err)
	}
}

func (p tab) press(keys ...string) {
	p.t.Helper()
	if err := p.Press(p.ctx, keys...); err != nil {
		p.t.Fatal(err)
	}
}

func (p tab) visit(page string) {
	p.t.Helper()
	if err := p.Navigate(p.ctx, page); err != nil {
		p.t.Fatal(err)
	}
}

// await waits until an expression is true.
func (p tab) await(what, expression string) {
	p.t.Helper()
	for range 200 {
		var is bool
		// While the page changes to another one, there is none to ask.
		if err := p.Evaluate(p.ctx, expression+" ? true : false", &is); err == nil && is {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.t.Fatalf("after 10 s still not: %s", what)
}

// rest waits until nothing moves, since a colour in between has another contrast.
const rest = `new Promise(r => setTimeout(r, 100)).then(() => Promise.race([new Promise(r => setTimeout(r, 2000)), Promise.allSettled(document.getAnimations().map(a => a.finished))])).then(() => 0)`

// picture writes a screenshot where make test-docs is asked to.
func (p tab) picture(name string) {
	p.t.Helper()
	folder := os.Getenv(pictures)
	if folder == "" {
		return
	}
	if err := p.Screenshot(p.ctx, filepath.Join(folder, name+".png")); err != nil {
		p.t.Fatal(err)
	}
}

// pages are all pages of a version.
func pages(t *testing.T) (files []string) {
	t.Helper()
	if os.Getenv(wanted) == "" {
		t.Skip("the documentation is only built by make test-docs")
	}
	err := filepath.WalkDir(built, func(file string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(file, ".html") {
			files = append(files, file)
		}
		return err
	})
	if err != nil || len(files) < 100 {
		t.Fatalf("%d pages in %s: %v", len(files), built, err)
	}
	return files
}

// loads finds what a page loads by itself: scripts, styles, fonts, images and frames. A link is loaded by the reader.
var loads = regexp.MustCompile(`(?i)<(?:script|img|iframe|source|video|audio|embed|object|link)\b[^>]*?\b(?:src|srcset|data|href)=["']?([^"'\s>]+)|url\(["']?([^"')]+)|@import\s+["']([^"']+)`)

// TestFilesNameNoOtherHost reads all pages and styles.
func TestFilesNameNoOtherHost(t *testing.T) {
	files := pages(t)
	styles, err := filepath.Glob(filepath.Join(built, "assets", "stylesheets", "*.css"))
	if err != nil || len(styles) < 3 {
		t.Fatalf("%d styles: %v", len(styles), err)
	}
	for _, file := range append(files, styles...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range loads.FindAllStringSubmatch(string(text), -1) {
			to := found[1] + found[2] + found[3]
			if target, err := url.Parse(to); err != nil || target.Host != "" {
				t.Errorf("%s loads %s", file, to)
			}
		}
	}
}

// TestPages opens every page on a telephone: it fits, and asks no other host for anything.
func TestPages(t *testing.T) {
	all := pages(t)
	root, err := filepath.Abs(filepath.Dir(built))
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, all[0], chromium.Options{Width: narrow, Height: tall})
	for _, page := range all {
		p.visit(page)
		if over := p.number(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			t.Errorf("%s is %d pixels wider than the window", page, over)
		}
		// What is beyond the window, and can't be scrolled to.
		const hidden = `[...document.querySelectorAll(".md-content *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 &&
			!e.closest("pre, .md-typeset__scrollwrap, .md-typeset__table, .highlight, .mermaid, .md-clipboard, [hidden]")).slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join("\n")`
		if got := p.text(hidden); got != "" {
			t.Errorf("%s has content beyond the window: %s", page, got)
		}
		for _, to := range p.Loaded() {
			if !strings.HasPrefix(to, "file://"+root+"/") && !strings.HasPrefix(to, "data:") && !strings.HasPrefix(to, "blob:") && to != "about:blank" && to != "about:srcdoc" {
				t.Errorf("%s loads %s", page, to)
			}
		}
	}
}

// TestSearch: a reader finds a page with the keyboard alone.
func TestSearch(t *testing.T) {
	p := start(t, filepath.Join(built, "index.html"), chromium.Options{})
	p.press("/")
	p.await("the key / focuses the search", `document.activeElement.matches(".md-search__input")`)
	p.press(strings.Split("encryption key", "")...)
	p.await("the search finds the guide", `[...document.querySelectorAll(".md-search-result__link")].some(a => a.href.includes("/guides/rotate-an-encryption-key.html"))`)
	p.evaluate(rest, nil)
	p.picture("search-wide")
	p.press("ArrowDown", "Enter")
	p.await("Enter opens a page that was found", `location.pathname.includes("encryption-key") && document.querySelector("mark, h1") !== null`)
}

const scheme = `document.body.getAttribute("data-md-color-scheme")`

// TestColours: pages have the colours of the system, until the reader chooses others.
func TestColours(t *testing.T) {
	page := filepath.Join(built, "guides", "embed.html")
	p := start(t, page, chromium.Options{Dark: true})
	if got := p.text(scheme); got != "slate" {
		t.Errorf("the system is dark, and the page has the scheme %s", got)
	}
	p = start(t, page, chromium.Options{})
	if got := p.text(scheme); got != "default" {
		t.Errorf("the system is light, and the page has the scheme %s", got)
	}
	for range 30 {
		p.press("Tab")
		if p.text(`document.activeElement.name || ""`) == "__palette" {
			break
		}
	}
	if p.text(`document.activeElement.name || ""`) != "__palette" {
		t.Fatal("30 times Tab does not lead to the choice of colours")
	}
	for range 2 {
		p.press("ArrowRight")
	}
	p.await("the keyboard chooses dark colours", scheme+` === "slate"`)
	p.visit(filepath.Join(built, "index.html"))
	if got := p.text(scheme); got != "slate" {
		t.Errorf("the next page has the scheme %s", got)
	}
}

// TestKeyboard: the first key leads past the navigation, and each element that can be focused shows it.
func TestKeyboard(t *testing.T) {
	p := start(t, filepath.Join(built, "guides", "index.html"), chromium.Options{})
	p.press("Tab")
	if got := p.text(`document.activeElement.classList[0] || ""`); got != "md-skip" {
		t.Fatalf("the first Tab focuses %q, want the link past the navigation", got)
	}
	p.press("Enter")
	p.await("the link leads into the page", `location.hash !== ""`)
	p.visit(filepath.Join(built, "guides", "index.html"))
	seen := map[string]bool{}
	for range 40 {
		p.press("Tab")
		const shown = `(() => { const e = document.activeElement, n = e.nextElementSibling, s = (x) => x && getComputedStyle(x).outlineStyle !== "none";
			return s(e) || s(n) || e.matches(".md-search__input, body, .md-toggle") ? "" : e.outerHTML.slice(0, 200) })()`
		if got := p.text(shown); got != "" {
			t.Errorf("the focus is not seen on %s", got)
		}
		seen[p.text(`document.activeElement.outerHTML.slice(0, 300)`)] = true
	}
	if len(seen) < 20 {
		t.Errorf("Tab leads to %d elements: the focus is caught", len(seen))
	}
}

// TestVersions: a reader of a release chooses another version of the same page.
func TestVersions(t *testing.T) {
	_ = pages(t)
	site := t.TempDir()
	for _, version := range []string{"main", "v0.9.0", "v0.10.0", "v0.11.0-rc.1"} {
		if err := os.CopyFS(filepath.Join(site, version), os.DirFS(built)); err != nil {
			t.Fatal(err)
		}
	}
	// A build for a release writes its name into each page.
	released := filepath.Join(site, "v0.9.0", "guides", "embed.html")
	page, err := os.ReadFile(released)
	if err != nil {
		t.Fatal(err)
	}
	page = bytes.Replace(page, []byte(`name="godwit-version" content="main"`), []byte(`name="godwit-version" content="v0.9.0"`), 1)
	if err := os.WriteFile(released, page, 0o600); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../../tools/docs/versions.py")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(python, script, site).CombinedOutput(); err != nil {
		t.Fatalf("versions.py: %v: %s", err, out)
	}
	p := start(t, filepath.Join(site, "index.html"), chromium.Options{})
	p.await("the site leads to the newest release", `location.pathname.endsWith("/v0.10.0/index.html")`)
	p.visit(filepath.Join(site, "main", "guides", "embed.html"))
	p.await("the page has a selector", `document.querySelector("select.godwit-version")`)
	if got := p.text(`[...document.querySelector("select.godwit-version").options].map(o => o.value + (o.selected ? "*" : "")).join(" ")`); got != "v0.11.0-rc.1 v0.10.0 v0.9.0 main*" {
		t.Errorf("the selector has %s", got)
	}
	p.picture("versions-wide")
	p.evaluate(`(() => { const s = document.querySelector("select.godwit-version"); s.value = "v0.9.0"; s.dispatchEvent(new Event("change")) })()`, nil)
	p.await("the same page of the other version", `location.pathname.endsWith("/v0.9.0/guides/embed.html") && document.readyState === "complete"`)
	p.await("it has a selector as well", `document.querySelector("select.godwit-version")?.value === "v0.9.0"`)
	if err := p.Resize(p.ctx, narrow, tall); err != nil {
		t.Fatal(err)
	}
	if over := p.number(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		t.Errorf("with a selector, the page is %d pixels wider than the window of a telephone", over)
	}
	if right := p.number(`Math.ceil(Math.max(...[...document.querySelectorAll(".md-header__inner > *")].map(e => e.getBoundingClientRect().right)))`); right > narrow {
		t.Errorf("with a selector, the header of a telephone ends at %d pixels", right)
	}
	p.picture("versions-narrow")
}

// TestDiagram: mermaid draws, in both schemes, and only a page with a diagram loads it.
func TestDiagram(t *testing.T) {
	p := start(t, filepath.Join(built, "reference", "hub-protocol.html"), chromium.Options{})
	p.await("the diagram is drawn", `document.querySelector("div.mermaid")?.getBoundingClientRect().height > 500`)
	p.visit(filepath.Join(built, "index.html"))
	for _, to := range p.Loaded() {
		if strings.Contains(to, "mermaid") {
			t.Errorf("the front page loads %s", to)
		}
	}
}

// TestAxe: axe-core has no serious finding on the main pages, in light and dark, on a wide and on a narrow screen.
func TestAxe(t *testing.T) {
	p := start(t, filepath.Join(built, "index.html"), chromium.Options{})
	dark := start(t, filepath.Join(built, "index.html"), chromium.Options{Dark: true})
	found, err := filepath.Glob(axe)
	if err != nil || len(found) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no axe-core at %s: %v", axe, err)
		}
		t.Skipf("no axe-core at %s: tools/chromium/install.sh gets it from npm", axe)
	}
	script, err := os.ReadFile(found[len(found)-1])
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range main {
		name := strings.ReplaceAll(strings.TrimSuffix(page, ".html"), "/", "-")
		for look, p := range map[string]tab{"light": p, "dark": dark} {
			p.visit(filepath.Join(built, filepath.FromSlash(page)))
			for size, width := range map[string]int{"wide": wide, "narrow": narrow} {
				if err := p.Resize(p.ctx, width, high); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(page, "hub-protocol") {
					p.await("the diagram is drawn", `document.querySelector("div.mermaid")`)
				}
				p.evaluate(rest, nil)
				p.picture(name + "-" + look + "-" + size)
				p.evaluate(string(script)+"\n;0", nil)
				const run = `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify([r.passes.length, r.violations.filter(v => v.impact === "serious" || v.impact === "critical").map(v => v.id + ": " + v.help + ": " + v.nodes.length + " times: " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + n.failureSummary.slice(0, 200)).join(" | "))]))`
				var result [2]json.RawMessage
				if err := json.Unmarshal([]byte(p.text(run)), &result); err != nil {
					t.Fatal(err)
				}
				var passes int
				var violations []string
				if err := errors.Join(json.Unmarshal(result[0], &passes), json.Unmarshal(result[1], &violations)); err != nil || passes < 10 {
					t.Fatalf("%s, %s, %s: axe-core ran %d rules: %v", page, look, size, passes, err)
				}
				for _, v := range violations {
					t.Errorf("%s, %s, %s: %s", page, look, size, v)
				}
			}
		}
	}
}

// TestRecording: at each time, the recording of the demo shows text, and all of it is within the window.
func TestRecording(t *testing.T) {
	for look, o := range map[string]chromium.Options{"light": {}, "dark": {Dark: true}} {
		o.Width, o.Height = wide, high
		p := start(t, "../../../docs/assets/demo.svg", o)
		length := p.number(`Math.round(Math.max(...document.getAnimations().map(a => a.effect.getTiming().duration)))`)
		if length < 15000 || length > 30000 {
			t.Errorf("the recording lasts %d ms, want 15 to 30 s", length)
		}
		for _, second := range []int{2, 8, 14, 20, 26} {
			p.evaluate(fmt.Sprintf(`document.getAnimations().forEach(a => { a.pause(); a.currentTime = %d }); 0`, second*1000), nil)
			const seen = `[...document.querySelectorAll("svg svg text")].filter(t => getComputedStyle(t).visibility === "visible")`
			if n := p.number(seen + `.length`); n < 1 {
				t.Errorf("%s: after %d s the recording shows nothing", look, second)
			}
			if beyond := p.text(seen + `.filter(t => t.getBoundingClientRect().right > document.documentElement.getBoundingClientRect().right).map(t => t.textContent).join("\n")`); beyond != "" {
				t.Errorf("%s: after %d s there is text beyond the window: %s", look, second, beyond)
			}
			p.picture(fmt.Sprintf("recording-%s-%02d", look, second))
		}
	}
}
