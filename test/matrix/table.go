package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

const (
	begin = "<!-- begin of the table that make matrix writes -->\n"
	end   = "<!-- end of the table -->"
)

// row has the results of one version.
type row struct {
	version string // as in 1.34.2
	builds  string
	cells   []string // of columns
}

// emptyRow returns the row of a version that was never run.
func emptyRow(version string) row {
	r := row{version: version, builds: notRun, cells: make([]string, len(columns))}
	for i := range r.cells {
		r.cells[i] = notRun
	}
	return r
}

// good reports whether nothing failed.
func (r row) good() bool {
	return r.builds == "yes" && !strings.Contains(strings.Join(r.cells, " "), "**fails**")
}

// page is docs/reference/versions.md.
type page struct {
	path          string
	before, after string
	rows          map[string]row // by exact version
}

// readPage reads the page, and the rows of its table if they have the columns of today.
func readPage(path string) (*page, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	before, rest, found := strings.Cut(string(text), begin)
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return nil, fmt.Errorf("read %s: no table between the lines %q and %q", path, strings.TrimSpace(begin), end)
	}
	p := &page{path: path, before: before, after: after, rows: map[string]row{}}
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) < 2 || lines[0] != header() {
		return p, nil
	}
	for _, line := range lines[2:] {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) == len(columns)+2 {
			p.rows[cells[0]] = row{version: cells[0], builds: cells[1], cells: cells[2:]}
		}
	}
	return p, nil
}

func header() string {
	titles := []string{"Kubernetes", "builds"}
	for _, c := range columns {
		titles = append(titles, c.title)
	}
	return line(titles)
}

func line(cells []string) string {
	clean := make([]string, len(cells))
	for i, c := range cells {
		clean[i] = strings.ReplaceAll(strings.Join(strings.Fields(c), " "), "|", "/")
	}
	return "| " + strings.Join(clean, " | ") + " |"
}

// write writes the table with a row for each version.
func (p *page) write(versions []version) error {
	var b bytes.Buffer
	b.WriteString(p.before + begin + header() + "\n|" + strings.Repeat("---|", len(columns)+2) + "\n")
	for _, v := range versions {
		r, ok := p.rows[v.exact]
		if !ok {
			r = emptyRow(v.exact)
		}
		b.WriteString(line(append([]string{r.version, r.builds}, r.cells...)) + "\n")
	}
	b.WriteString(end + p.after)
	return os.WriteFile(p.path, b.Bytes(), 0o644) //nolint:gosec // a page of the documentation
}
