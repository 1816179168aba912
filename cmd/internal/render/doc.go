// Package render is what the output of all commands has in common: the envelope of the JSON
// contract, its encoding, and tables with columns, colours and numbers for people. It is
// pure: values in, text out.
//
// The contract is the API group cli.godwit.dev. Output is always an object with items, also
// when a command fails; its fields are never left out and its arrays are never null. Within
// a version fields are added, never changed or removed.
//
// The kinds of a domain, their tables and sums are a package of its own: crdreport,
// revisionreport and externalnamereport. Those of a single command are beside the command. This package knows none
// of them.
//
// # Reading order
//
// contract.go has lists and encode.go writes them. reason.go has the reasons of the command line, and problem.go
// findings in words.
// style.go has colours, words.go words numbers and lists, and cell.go has the cells of a table. table.go has its columns, and
// its text. markdown.go writes Markdown, package html HTML, and lines.go what stands below a table. A file uses only files
// before it.
package render
