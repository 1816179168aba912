package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const assets = "../../../docs/assets"

// TestDemo: the SVG of the README is what the program makes of the asciicast beside it.
func TestDemo(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(assets, "demo.cast"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(assets, "demo.svg"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := readCast(text)
	if err != nil {
		t.Fatal(err)
	}
	svg, err := render(c)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(svg, want) {
		t.Error("docs/assets/demo.svg is not made of demo.cast: go run ./test/docs/recording -render")
	}
	if len(svg) > largest {
		t.Errorf("the SVG has %d bytes, more than %d", len(svg), largest)
	}
	for _, never := range []string{"<script", "href=", "url(", "@import"} {
		if bytes.Contains(svg, []byte(never)) {
			t.Errorf("the SVG has %s", never)
		}
	}
	if n := strings.Count(string(svg), "http"); n != strings.Count(string(svg), `xmlns="http`)+strings.Count(string(svg), "http://127.0.0.1")+strings.Count(string(svg), "https://127.0.0.1")+strings.Count(string(svg), "httproutes")+strings.Count(string(svg), "httproute.") {
		t.Errorf("the SVG names a URL: %d times http", n)
	}
	for _, shown := range []string{"$ make demo", "objects, 0 at old versions"} {
		if !bytes.Contains(svg, []byte(shown)) {
			t.Errorf("the SVG does not show %q", shown)
		}
	}
}

func TestPace(t *testing.T) {
	for reason, c := range map[string]struct {
		events []event
		want   []time.Duration
	}{
		"an idle time is cut":            {[]event{{0, "a"}, {time.Minute, "b"}}, []time.Duration{0, part + idle}},
		"a short one stays":              {[]event{{0, "a"}, {idle / 2, "b"}}, []time.Duration{0, part + idle/2}},
		"lines come one after the other": {[]event{{0, "a\nb\nc"}}, []time.Duration{0, line, 2 * line}},
	} {
		var got []time.Duration
		for _, e := range pace(c.events) {
			got = append(got, e.at)
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", reason, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", reason, got, c.want)
			}
		}
	}
	var bar []event
	for i := range 1000 {
		bar = append(bar, event{time.Duration(i) * 100 * time.Millisecond, up + "\x1b[J1 of 2\n"})
	}
	bar = append(bar, event{101 * time.Second, "done\n"})
	if drawn := pace(bar); len(drawn) > 60 || drawn[len(drawn)-1].at > 12*time.Second || drawn[len(drawn)-1].text != "done\n" {
		t.Errorf("a bar of 100 s is drawn %d times, until %s", len(drawn), drawn[len(drawn)-1].at)
	}
	long := pace([]event{{0, strings.Repeat("a line\n", 1000)}})
	if last := long[len(long)-1].at; last > length-hold {
		t.Errorf("a thousand lines take %s, want at most %s", last, length-hold)
	}
}

// TestPlay has the text of the rows, in the order in which they come.
func TestPlay(t *testing.T) {
	for reason, c := range map[string]struct {
		output string
		want   string
		first  int // row of the window in the end, which has 3
	}{
		"lines":                    {"a\r\nb", "a b", 0},
		"a return":                 {"ab\rc", "ab cb", 0},
		"a bar that is redrawn":    {"1 ██\r\n\x1b[1A\x1b[J2 ██\r\n", "1 ██ 2 ██", 0},
		"the window follows":       {"a\r\nb\r\nc\r\nd", "a b c d", 1},
		"also after a line break":  {"a\r\nb\r\nc\r\nd\r\n", "a b c d", 1},
		"an escape is no text":     {"\x1b[31mred\x1b[0m", "red", 0},
		"what is removed":          {"a\r\x1b[K", "a", 0},
		"blanks between two words": {"a   b", "a   b", 0},
	} {
		f, err := play(cast{header: header{Version: 2, Width: 20, Height: 3}, events: split(c.output)})
		if err != nil {
			t.Errorf("%s: %v", reason, err)
			continue
		}
		var got []string
		for _, l := range f.lines {
			var text strings.Builder
			for _, cell := range l.cells {
				text.WriteRune(cell.Char)
			}
			got = append(got, text.String())
		}
		if strings.Join(got, " ") != c.want || f.scrolls[len(f.scrolls)-1].first != c.first {
			t.Errorf("%s: %q from row %d, want %q from row %d", reason, got, f.scrolls[len(f.scrolls)-1].first, c.want, c.first)
		}
	}
}

// split makes an event of each line, and of what follows a return.
func split(output string) (events []event) {
	for i, text := range strings.SplitAfter(strings.ReplaceAll(output, "\r", "\x00\r"), "\x00") {
		if text = strings.TrimSuffix(text, "\x00"); text != "" {
			events = append(events, event{time.Duration(i) * time.Second, text})
		}
	}
	return events
}

func TestRecord(t *testing.T) {
	c, err := record(t.Context(), 40, 10, "sh", "-c", `test -t 1 && stty size && printf '✓ done\n'`)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := c.write(&text); err != nil {
		t.Fatal(err)
	}
	again, err := readCast(text.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for _, e := range again.events {
		shown.WriteString(e.text)
	}
	if want := "10 40\r\n✓ done\r\n"; !strings.HasSuffix(shown.String(), want) || again.header.Width != 40 {
		t.Errorf("recorded %q with %d columns, want the end %q with 40", shown.String(), again.header.Width, want)
	}
	if _, err := record(t.Context(), 40, 10, "sh", "-c", "echo no control plane; exit 3"); err == nil || !strings.Contains(err.Error(), "no control plane") {
		t.Errorf("a command that fails: %v, want its last output", err)
	}
}

// TestRun: a run that fails writes nothing.
func TestRun(t *testing.T) {
	folder := t.TempDir()
	o := options{cols: 40, rows: 10, cast: filepath.Join(folder, "a.cast"), svg: filepath.Join(folder, "a.svg")}
	for reason, c := range map[string]struct {
		change  func(*options)
		command []string
		want    string
	}{
		"no command":          {func(*options) {}, nil, "name the command"},
		"a command that ends": {func(*options) {}, []string{"false"}, "nothing is written"},
		"a program not there": {func(*options) {}, []string{"./not-there"}, "not-there"},
		"too narrow":          {func(o *options) { o.cols = 3 }, []string{"true"}, "out of bounds"},
		"no asciicast":        {func(o *options) { o.render = true }, nil, "read the recording"},
	} {
		changed := o
		c.change(&changed)
		if err := run(t.Context(), changed, c.command); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", reason, err, c.want)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
	if err := run(t.Context(), o, []string{"echo", "a < b"}); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(o.svg)
	if err != nil || !bytes.Contains(first, []byte("a &lt; b")) {
		t.Errorf("the SVG does not show the output: %v", err)
	}
	o.render = true
	if err := run(t.Context(), o, nil); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(o.svg); err != nil || !bytes.Equal(first, second) {
		t.Errorf("the same asciicast gives another SVG: %v", err)
	}
}

func TestRecorder(t *testing.T) {
	var got []string
	r := recorder{add: func(text string) { got = append(got, text) }}
	for _, p := range []string{"a\xe2", "\x9c", "\x93b"} { // ✓ in three parts
		if _, err := r.Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Join(got, "|") != "a|✓b" {
		t.Errorf("recorded %q, want whole characters", got)
	}
}
