// Package render has what the output of all commands shares: the envelope of the JSON contract, its encoding, and
// tables with columns, colours and numbers for users. It is pure: values in, text out.
//
// The contract is the API group cli.godwit.dev. Output is always an object with items, even if a command fails; its
// fields are never omitted and its arrays are never null. Within a version fields are added, never changed or removed.
//
// Each domain has its own package for its kinds, tables and sums, such as crdreport, revisionreport and
// externalnamereport. Those of a single command are in the package of the command.
//
// # Reading order
//
// contract.go has lists and encode.go writes them. reason.go has the reasons of the command line, and problem.go
// findings in words. style.go has colours, words.go numbers and lists in words, and cell.go the cells of a table.
// table.go has its columns and its text. markdown.go writes Markdown, package html HTML. wrap.go wraps sentences and
// remedies, lines.go has the lines below a table, and failure.go those of a run's failures. A file uses only files before it.
package render
