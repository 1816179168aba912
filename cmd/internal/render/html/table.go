package html

import (
	"html/template"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// table is a grid as the page shows it: a command is a line of its own below or above its rows, and no column.
type table struct {
	Header []string
	Key    int
	Groups []group
}

// group is consecutive on the page: rows that have the same next command, or none.
type group struct {
	Command string
	// Columns is the number of columns, which the command spans.
	Columns int
	Rows    [][]render.Cell
}

// tableOf groups rows by their command, in the order in which the commands occur.
func tableOf(g render.Grid) table {
	t := table{Header: g.Header, Key: g.Key}
	last := len(g.Header) - 1
	hasCommand := slices.ContainsFunc(g.Rows, func(row []render.Cell) bool { return row[last].Code })
	if hasCommand {
		t.Header = g.Header[:last]
	}
	place := map[string]int{}
	for _, row := range g.Rows {
		command := ""
		if hasCommand {
			command, row = row[last].Text, row[:last]
		}
		at, found := place[command]
		if !found {
			at = len(t.Groups)
			place[command], t.Groups = at, append(t.Groups, group{Command: command, Columns: len(t.Header)})
		}
		t.Groups[at].Rows = append(t.Groups[at].Rows, row)
	}
	return t
}

const (
	// shortWord is the length up to which a word never breaks: less than a line on a telephone.
	shortWord = 24
	// longestLabel is the length of the longest name without a separator: a DNS label. Only what is longer breaks within, such as a checksum.
	longestLabel = 63
	// piece is how much of such a word stays together.
	piece = 16
)

// breakable is text in which a long name may break at its separators, a checksum into pieces, and no other word: a browser would break each after
// a dash.
func breakable(text string) template.HTML {
	var b strings.Builder
	for i, word := range strings.Split(text, " ") {
		if i > 0 {
			b.WriteString(" ")
		}
		isWhole := strings.Contains(word, "-") && (len(word) <= shortWord || strings.HasPrefix(word, "-")) && word != "-"
		if isWhole {
			b.WriteString(`<span class="whole">`)
		}
		for j, part := range parts(word) {
			if j > 0 {
				b.WriteString("<wbr>")
			}
			b.WriteString(template.HTMLEscapeString(part))
		}
		if isWhole {
			b.WriteString("</span>")
		}
	}
	return template.HTML(b.String()) //nolint:gosec // each part is escaped
}

// parts are the parts of a word between which it may break: before a dot, and after other separators.
func parts(word string) []string {
	if len(word) <= shortWord {
		return []string{word}
	}
	if len(word) > longestLabel && !strings.ContainsAny(word, separators) {
		var all []string
		for runes := range slices.Chunk([]rune(word), piece) {
			all = append(all, string(runes))
		}
		return all
	}
	var all []string
	begin := 0
	for i, r := range word {
		if r == '.' && i > begin {
			all, begin = append(all, word[begin:i]), i
		} else if strings.ContainsRune(separators, r) && r != '.' && i+1 < len(word) {
			all, begin = append(all, word[begin:i+1]), i+1
		}
	}
	return append(all, word[begin:])
}

const separators = "./:@_,"

// words are the arguments of a command. A line breaks between two of them, and within one only if it is longer than the line.
func words(command string) []string { return strings.Split(command, " ") }

// ways are the ways of a remedy, the best first, each with its steps.
func ways(text string) [][]remedy.Step { return remedy.Ways(text) }
