package links

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
)

var (
	// unnamed are the characters that GitHub leaves out of an anchor.
	unnamed = regexp.MustCompile(`[^\p{L}\p{N}\p{M}_ -]`)
	// identified finds anchors in HTML.
	identified = regexp.MustCompile(`\b(?:id|name)="([^"]+)"`)
)

// anchors returns the anchors of a Markdown document.
func anchors(source []byte) map[string]bool {
	found := map[string]bool{}
	walk(source, func(node ast.Node) {
		switch n := node.(type) {
		case *ast.Heading:
			found[unique(found, anchor(words(n, source)))] = true
		case *ast.HTMLBlock, *ast.RawHTML:
			for _, id := range identified.FindAllStringSubmatch(raw(n, source), -1) {
				found[id[1]] = true
			}
		}
	})
	return found
}

// anchor returns the name that GitHub gives to a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(unnamed.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// unique numbers the second and each later heading of the same name.
func unique(taken map[string]bool, name string) string {
	for n, numbered := 1, name; ; n++ {
		if !taken[numbered] {
			return numbered
		}
		numbered = name + "-" + strconv.Itoa(n)
	}
}
