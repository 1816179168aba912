package render

import "strings"

// Markdown returns a header, and a line for each row.
func (t Table[T]) Markdown(rows []T) string {
	g := t.In(Markdown, true, rows)
	var text strings.Builder
	line := func(cells []string) { text.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(g.Header)
	text.WriteString(strings.Repeat("|---", len(g.Header)) + "|\n")
	for _, row := range g.Rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = c.markdown()
		}
		line(cells)
	}
	return text.String()
}

// markdown returns the cell for a Markdown table. It escapes bars, which end a cell even in code.
func (c Cell) markdown() string {
	if c.Code && c.Text != "" {
		return strings.ReplaceAll(MarkdownCode(c.Text), "|", `\|`)
	}
	return MarkdownText(OrDash(c.Text))
}

var markdownEscapes = strings.NewReplacer("\n", " ", "|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`, `\`, `\\`)

// MarkdownText escapes foreign text for Markdown.
func MarkdownText(text string) string { return markdownEscapes.Replace(text) }

// MarkdownCode returns a command or a remedy as Markdown code. Its fence is longer than any run of backticks within it.
func MarkdownCode(text string) string {
	text = strings.ReplaceAll(text, "\n", " ")
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}
