package links

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// Problem is a link that leads nowhere.
type Problem struct {
	File   string
	Line   int
	Target string
	Cause  string
}

func (p Problem) String() string {
	return fmt.Sprintf("%s:%d: the link to %s is broken: %s", p.File, p.Line, p.Target, p.Cause)
}

// Repository is the files of a git repository, by their paths with slashes.
type Repository struct {
	root  string
	files map[string]bool
	// folders have a file below them.
	folders map[string]bool
	known   map[string]map[string]bool // anchors of Markdown files
}

// Open lists the files of the repository with a folder: those of git, and new ones that git does not ignore.
func Open(ctx context.Context, root string) (*Repository, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of %s with git: %w", root, err)
	}
	r := &Repository{root: root, files: map[string]bool{}, folders: map[string]bool{".": true}, known: map[string]map[string]bool{}}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
			continue // the user deleted the file without `git rm`
		}
		r.files[name] = true
		for folder := path.Dir(name); !r.folders[folder]; folder = path.Dir(folder) {
			r.folders[folder] = true
		}
	}
	return r, nil
}

// Markdown returns the files with links to check. It leaves out the files below testdata.
func (r *Repository) Markdown() (names []string) {
	for name := range r.files {
		if path.Ext(name) == ".md" && !strings.Contains("/"+name, "/testdata/") {
			names = append(names, name)
		}
	}
	return names
}

// Check follows the links of a Markdown file.
func (r *Repository) Check(name string) ([]Problem, error) {
	source, err := r.read(name)
	if err != nil {
		return nil, err
	}
	var problems []Problem
	for _, l := range find(source) {
		if cause := r.follow(name, l.target); cause != "" {
			problems = append(problems, Problem{File: name, Line: 1 + bytes.Count(source[:l.at], []byte("\n")), Target: l.target, Cause: cause})
		}
	}
	return problems, nil
}

func (r *Repository) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(r.root, filepath.FromSlash(name)))
}

// link is a target, and where its link begins.
type link struct {
	target string
	at     int
}

var (
	// inHTML finds links in HTML.
	inHTML = regexp.MustCompile(`\b(?:href|src|srcset)="([^"]*)"`)
	// unresolved finds a link by reference, [text][name], whose name no line of the file defines.
	unresolved = regexp.MustCompile(`\]\[[^\]\s][^\]]*\]`)
)

// find lists the links and images of a Markdown document.
func find(source []byte) (links []link) {
	walk(source, func(node ast.Node) {
		switch n := node.(type) {
		case *ast.Link:
			links = append(links, link{string(n.Destination), n.Pos()})
		case *ast.Image:
			links = append(links, link{string(n.Destination), n.Pos()})
		case *ast.AutoLink:
			if n.AutoLinkType == ast.AutoLinkURL {
				links = append(links, link{string(n.URL(source)), n.Pos()})
			}
		case *ast.HTMLBlock, *ast.RawHTML:
			for _, found := range inHTML.FindAllStringSubmatch(raw(n, source), -1) {
				links = append(links, link{found[1], n.Pos()})
			}
		case *ast.Paragraph:
			if found := unresolved.FindString(seen(n, source)); found != "" {
				links = append(links, link{found[1:], n.Lines().At(0).Start})
			}
		}
	})
	return links
}

// seen returns the text of a paragraph without its code.
func seen(paragraph ast.Node, source []byte) string {
	var all strings.Builder
	for n := paragraph.FirstChild(); n != nil; n = n.NextSibling() {
		if t, ok := n.(*ast.Text); ok {
			all.Write(t.Segment.Value(source))
		}
	}
	return all.String()
}

// follow returns why a link leads nowhere, or an empty string.
func (r *Repository) follow(from, to string) string {
	target, err := url.Parse(to)
	switch {
	case err != nil:
		return "it is not a URL: " + err.Error()
	case strings.HasPrefix(to, "["):
		return "no line of the file says what it refers to"
	case target.Scheme == "mailto" && strings.Contains(target.Opaque, "@"):
		return ""
	case target.Scheme == "http" || target.Scheme == "https":
		if !strings.Contains(target.Hostname(), ".") && target.Hostname() != "localhost" {
			return "its host has no domain"
		}
		return ""
	case target.Scheme != "" || target.Host != "":
		return "its scheme is not https, http or mailto"
	case strings.HasPrefix(target.Path, "/"):
		return "the path is absolute. Write it relative to the file"
	}
	return r.local(from, target)
}

func (r *Repository) local(from string, target *url.URL) string {
	name := from
	if target.Path != "" {
		name = path.Join(path.Dir(from), target.Path)
	}
	switch {
	case r.folders[name] && target.Fragment == "":
		return ""
	case !r.files[name]:
		return fmt.Sprintf("git has no file or folder %s", name)
	case target.Fragment == "":
		return ""
	case path.Ext(name) == ".md":
		return r.heading(name, target.Fragment)
	}
	return r.line(name, target.Fragment)
}

func (r *Repository) heading(name, fragment string) string {
	if r.known[name] == nil {
		source, err := r.read(name)
		if err != nil {
			return err.Error()
		}
		r.known[name] = anchors(source)
	}
	if !r.known[name][fragment] {
		return fmt.Sprintf("%s has no heading for #%s", name, fragment)
	}
	return ""
}

// line checks the anchor of a line, as in walk/run.go#L10.
func (r *Repository) line(name, fragment string) string {
	first, _, _ := strings.Cut(fragment, "-")
	number, err := strconv.Atoi(strings.TrimPrefix(first, "L"))
	if err != nil || !strings.HasPrefix(first, "L") {
		return fmt.Sprintf("%s is not Markdown, so that the anchor must be a line: #L10", name)
	}
	source, err := r.read(name)
	if err != nil {
		return err.Error()
	}
	if number < 1 || number > 1+bytes.Count(source, []byte("\n")) {
		return fmt.Sprintf("%s has no line %d", name, number)
	}
	return ""
}
