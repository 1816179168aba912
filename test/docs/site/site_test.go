package site_test

import (
	"bytes"
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

var docs = chromium.Tests{Target: "make test-docs", Switch: "GODWIT_TEST_DOCS", Timeout: 15 * time.Minute, Width: wide, Height: high}

// main are the pages that a reader is most likely to see, and those with what is hard to show: tables, code, diagrams.
var main = []string{
	"index.html", "guides/index.html", "guides/drop-an-api-version.html", "guides/embed.html", "tutorials/drop-an-api-version.html", "tutorials/index.html",
	"reference/cli.html", "reference/events.html", "reference/hub-protocol.html", "reference/chart.html", "reference/surface.html",
	"explanation/architecture.html", "adr/index.html", "adr/0015-old-revisions.html", "project/changelog.html",
}

// start starts a browser and opens a page in it, or skips the test.
func start(t *testing.T, page string, o chromium.Options) chromium.Tab {
	t.Helper()
	return docs.Open(t, docs.Start(t), page, o)
}

// rest waits until nothing moves, since a colour in between has another contrast.
const rest = `new Promise(r => setTimeout(r, 100)).then(() => Promise.race([new Promise(r => setTimeout(r, 2000)), Promise.allSettled(document.getAnimations().map(a => a.finished))])).then(() => 0)`

// pages are all pages of a version.
func pages(t *testing.T) (files []string) {
	t.Helper()
	docs.SkipUnwanted(t)
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
		p.Navigate(page)
		if over := p.Number(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			t.Errorf("%s is %d pixels wider than the window", page, over)
		}
		// What is beyond the window, and can't be scrolled to.
		const hidden = `[...document.querySelectorAll(".md-content *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 &&
			!e.closest("pre, .md-typeset__scrollwrap, .md-typeset__table, .highlight, .mermaid, .md-clipboard, [hidden]")).slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join("\n")`
		if got := p.Text(hidden); got != "" {
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
	p.Press("/")
	p.Await("the key / focuses the search", `document.activeElement.matches(".md-search__input")`)
	p.Press(strings.Split("encryption key", "")...)
	p.Await("the search finds the guide", `[...document.querySelectorAll(".md-search-result__link")].some(a => a.href.includes("/guides/rotate-an-encryption-key.html"))`)
	p.Evaluate(rest, nil)
	p.Picture("search-wide")
	p.Press("ArrowDown", "Enter")
	p.Await("Enter opens a page that was found", `location.pathname.includes("encryption-key") && document.querySelector("mark, h1") !== null`)
}

const scheme = `document.body.getAttribute("data-md-color-scheme")`

// TestColours: pages have the colours of the system, until the reader chooses others.
func TestColours(t *testing.T) {
	page := filepath.Join(built, "guides", "embed.html")
	p := start(t, page, chromium.Options{Dark: true})
	if got := p.Text(scheme); got != "slate" {
		t.Errorf("the system is dark, and the page has the scheme %s", got)
	}
	p = start(t, page, chromium.Options{})
	if got := p.Text(scheme); got != "default" {
		t.Errorf("the system is light, and the page has the scheme %s", got)
	}
	for range 30 {
		p.Press("Tab")
		if p.Text(`document.activeElement.name || ""`) == "__palette" {
			break
		}
	}
	if p.Text(`document.activeElement.name || ""`) != "__palette" {
		t.Fatal("30 times Tab does not lead to the choice of colours")
	}
	for range 2 {
		p.Press("ArrowRight")
	}
	p.Await("the keyboard chooses dark colours", scheme+` === "slate"`)
	p.Navigate(filepath.Join(built, "index.html"))
	if got := p.Text(scheme); got != "slate" {
		t.Errorf("the next page has the scheme %s", got)
	}
}

// TestKeyboard: the first key leads past the navigation, and each element that can be focused shows it.
func TestKeyboard(t *testing.T) {
	p := start(t, filepath.Join(built, "guides", "index.html"), chromium.Options{})
	p.Press("Tab")
	if got := p.Text(`document.activeElement.classList[0] || ""`); got != "md-skip" {
		t.Fatalf("the first Tab focuses %q, want the link past the navigation", got)
	}
	p.Press("Enter")
	p.Await("the link leads into the page", `location.hash !== ""`)
	p.Navigate(filepath.Join(built, "guides", "index.html"))
	seen := map[string]bool{}
	for range 40 {
		p.Press("Tab")
		const shown = `(() => { const e = document.activeElement, n = e.nextElementSibling, s = (x) => x && getComputedStyle(x).outlineStyle !== "none";
			return s(e) || s(n) || e.matches(".md-search__input, body, .md-toggle") ? "" : e.outerHTML.slice(0, 200) })()`
		if got := p.Text(shown); got != "" {
			t.Errorf("the focus is not seen on %s", got)
		}
		seen[p.Text(`document.activeElement.outerHTML.slice(0, 300)`)] = true
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
	p.Await("the site leads to the newest release", `location.pathname.endsWith("/v0.10.0/index.html")`)
	p.Navigate(filepath.Join(site, "main", "guides", "embed.html"))
	p.Await("the page has a selector", `document.querySelector("select.godwit-version")`)
	if got := p.Text(`[...document.querySelector("select.godwit-version").options].map(o => o.value + (o.selected ? "*" : "")).join(" ")`); got != "v0.11.0-rc.1 v0.10.0 v0.9.0 main*" {
		t.Errorf("the selector has %s", got)
	}
	p.Picture("versions-wide")
	p.Evaluate(`(() => { const s = document.querySelector("select.godwit-version"); s.value = "v0.9.0"; s.dispatchEvent(new Event("change")) })()`, nil)
	p.Await("the same page of the other version", `location.pathname.endsWith("/v0.9.0/guides/embed.html") && document.readyState === "complete"`)
	p.Await("it has a selector as well", `document.querySelector("select.godwit-version")?.value === "v0.9.0"`)
	p.Resize(narrow, tall)
	if over := p.Number(`document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
		t.Errorf("with a selector, the page is %d pixels wider than the window of a telephone", over)
	}
	if right := p.Number(`Math.ceil(Math.max(...[...document.querySelectorAll(".md-header__inner > *")].map(e => e.getBoundingClientRect().right)))`); right > narrow {
		t.Errorf("with a selector, the header of a telephone ends at %d pixels", right)
	}
	p.Picture("versions-narrow")
}

// TestDiagram: mermaid draws, in both schemes, and only a page with a diagram loads it.
func TestDiagram(t *testing.T) {
	p := start(t, filepath.Join(built, "reference", "hub-protocol.html"), chromium.Options{})
	p.Await("the diagram is drawn", `document.querySelector("div.mermaid")?.getBoundingClientRect().height > 500`)
	p.Navigate(filepath.Join(built, "index.html"))
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
	axe := chromium.Axe(t)
	for _, page := range main {
		name := strings.ReplaceAll(strings.TrimSuffix(page, ".html"), "/", "-")
		for look, p := range map[string]chromium.Tab{"light": p, "dark": dark} {
			p.Navigate(filepath.Join(built, filepath.FromSlash(page)))
			for size, width := range map[string]int{"wide": wide, "narrow": narrow} {
				p.Resize(width, high)
				if strings.Contains(page, "hub-protocol") {
					p.Await("the diagram is drawn", `document.querySelector("div.mermaid")`)
				}
				p.Evaluate(rest, nil)
				p.Picture(name + "-" + look + "-" + size)
				violations, err := p.Violations(axe, "serious", "critical")
				if err != nil {
					t.Fatalf("%s, %s, %s: %v", page, look, size, err)
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
		length := p.Number(`Math.round(Math.max(...document.getAnimations().map(a => a.effect.getTiming().duration)))`)
		if length < 15000 || length > 30000 {
			t.Errorf("the recording lasts %d ms, want 15 to 30 s", length)
		}
		for _, second := range []int{2, 8, 14, 20, 26} {
			p.Evaluate(fmt.Sprintf(`document.getAnimations().forEach(a => { a.pause(); a.currentTime = %d }); 0`, second*1000), nil)
			const seen = `[...document.querySelectorAll("svg svg text")].filter(t => getComputedStyle(t).visibility === "visible")`
			if n := p.Number(seen + `.length`); n < 1 {
				t.Errorf("%s: after %d s the recording shows nothing", look, second)
			}
			if beyond := p.Text(seen + `.filter(t => t.getBoundingClientRect().right > document.documentElement.getBoundingClientRect().right).map(t => t.textContent).join("\n")`); beyond != "" {
				t.Errorf("%s: after %d s there is text beyond the window: %s", look, second, beyond)
			}
			p.Picture(fmt.Sprintf("recording-%s-%02d", look, second))
		}
	}
}
