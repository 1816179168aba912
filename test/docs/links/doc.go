// Package links checks the links of all Markdown files in the repository.
//
// A link within the repository must name a file or a folder that git has, and an anchor that the file has: a heading as
// GitHub names it, an id in HTML, or a line of a file that is not Markdown. Of a link to another site, only the form is
// checked: the tests need no network.
//
// Read markdown.go, anchor.go for the names of headings, then links.go.
package links
