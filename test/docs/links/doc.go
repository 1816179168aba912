// Package links checks the links of all Markdown files in the repository.
//
// A link within the repository must name a file or a folder that git has, and an anchor that the file has: a heading as
// GitHub names it, an id in HTML, or a line of a file that is no Markdown. A link to another site must only have the
// form of one: the tests need no network.
//
// Read markdown.go, anchor.go for the names of headings, then links.go.
package links
