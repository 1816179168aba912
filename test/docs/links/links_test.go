package links

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRepository follows each link of each Markdown file.
func TestRepository(t *testing.T) {
	r, err := Open(t.Context(), filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	files := r.Markdown()
	if len(files) < 100 || !r.files["README.md"] || !r.files["charts/godwit/README.md"] {
		t.Fatalf("found %d files, want at least 100 with README.md", len(files))
	}
	links := 0
	for _, name := range files {
		problems, err := r.Check(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Error(p)
		}
		source, err := r.read(name)
		if err != nil {
			t.Fatal(err)
		}
		links += len(find(source))
	}
	if links < 300 {
		t.Errorf("found %d links, want at least 300", links)
	}
}

// TestNavigation: each page that tools/docs/mkdocs.yml names is a file of docs, or one that hooks.py adds.
func TestNavigation(t *testing.T) {
	r, err := Open(t.Context(), filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	config, err := r.read("tools/docs/mkdocs.yml")
	if err != nil {
		t.Fatal(err)
	}
	added, err := r.read("tools/docs/hooks.py")
	if err != nil {
		t.Fatal(err)
	}
	_, nav, _ := strings.Cut(string(config), "\nnav:\n")
	named := regexp.MustCompile(`[\w./-]+\.md`).FindAllString(nav, -1)
	if len(named) < 40 {
		t.Errorf("the navigation names %d pages, want at least 40", len(named))
	}
	for _, page := range named {
		if !r.files["docs/"+page] && !strings.Contains(string(added), `"`+page+`"`) && page != "reference/surface.md" {
			t.Errorf("tools/docs/mkdocs.yml names %s, which is no file of docs", page)
		}
	}
}

// TestCheck has a link on line 3, or what is written there.
func TestCheck(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"docs/there.md": "# `a/b`: It's *here*\n\n# Twice\n\n# Twice\n\n<a id=\"by-hand\"></a>\n\n```\n# no heading\n```\n",
		"run.go":        "package run\n",
		"ignored/x.md":  "",
		".gitignore":    "/ignored/\n",
	} {
		write(t, filepath.Join(root, filepath.FromSlash(name)), text)
	}
	if out, err := exec.Command("git", "-C", root, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	for reason, c := range map[string]struct{ text, want string }{
		"a file":                         {"[a](there.md)", ""},
		"a folder":                       {"[a](../docs)", ""},
		"the repository itself":          {"[a](..)", ""},
		"a file that is missing":         {"[a](away.md)", "docs/from.md:3: the link to away.md is broken: git has no file or folder docs/away.md"},
		"the second link of a line":      {"[a](there.md) and [b](away.md)", "docs/from.md:3: the link to away.md"},
		"on the next line":               {"See\n[a](away.md)", "docs/from.md:4: "},
		"in a table":                     {"| a |\n|---|\n| [a](away.md) |", "docs/from.md:5: "},
		"in a list":                      {"- b\n- [a](away.md)", "docs/from.md:4: "},
		"outside of the repository":      {"[a](../../x.md)", "git has no file or folder"},
		"a file that git ignores":        {"[a](../ignored/x.md)", "git has no file or folder ignored/x.md"},
		"an image":                       {"![a](away.svg)", "away.svg"},
		"HTML":                           {"<img alt=\"a\" src=\"away.svg\">", "away.svg"},
		"within code":                    {"`[a](away.md)`", ""},
		"in a block of code":             {"```\n[a](away.md)\n```", ""},
		"a heading":                      {"[a](there.md#ab-its-here)", ""},
		"the second heading of a name":   {"[a](there.md#twice-1)", ""},
		"a third one":                    {"[a](there.md#twice-2)", "docs/there.md has no heading for #twice-2"},
		"a heading within code":          {"[a](there.md#no-heading)", "has no heading for #no-heading"},
		"an id in HTML":                  {"[a](there.md#by-hand)", ""},
		"an anchor of this file":         {"[a](#from)", ""},
		"one that this file lacks":       {"[a](#to)", "docs/from.md has no heading for #to"},
		"a line":                         {"[a](../run.go#L1)", ""},
		"a line after the last":          {"[a](../run.go#L9)", "run.go has no line 9"},
		"a heading of Go":                {"[a](../run.go#run)", "the anchor must be a line"},
		"an absolute path":               {"[a](/docs/there.md)", "relative"},
		"another site":                   {"[a](https://example.com/x#y)", ""},
		"a bare URL":                     {"https://example.com", ""},
		"a host without a domain":        {"[a](https://example)", "has no domain"},
		"a scheme with an error":         {"[a](htps://example.com)", "scheme"},
		"a URL with an error":            {"[a](https://exa%mple.com)", "not a URL"},
		"a link by reference":            {"[a][b]\n\n[b]: there.md", ""},
		"a link by a reference not here": {"[a][b]", "docs/from.md:3: the link to [b] is broken: no line"},
	} {
		write(t, filepath.Join(root, "docs", "from.md"), "# From\n\n"+c.text+"\n")
		r, err := Open(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		problems, err := r.Check("docs/from.md")
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case c.want == "" && len(problems) > 0:
			t.Errorf("%s: %v, want none", reason, problems)
		case c.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].String(), c.want)):
			t.Errorf("%s: %v, want %q", reason, problems, c.want)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
