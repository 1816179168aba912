package links

import (
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// walk visits the nodes of a document as GitHub reads it.
func walk(source []byte, visit func(ast.Node)) {
	document := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			visit(n)
		}
		return ast.WalkContinue, nil
	})
}

// words returns the text of a heading as a reader sees it.
func words(node ast.Node, source []byte) string {
	var seen strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				seen.Write(n.Segment.Value(source))
			}
		case *ast.String:
			if entering {
				seen.Write(n.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return seen.String()
}

// raw returns the HTML of a node.
func raw(node ast.Node, source []byte) string {
	switch n := node.(type) {
	case *ast.RawHTML:
		return string(n.Segments.Value(source))
	case *ast.HTMLBlock:
		html := string(n.Lines().Value(source))
		if n.HasClosure() {
			html += string(n.ClosureLine.Value(source))
		}
		return html
	}
	return ""
}
