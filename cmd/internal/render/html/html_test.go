package html_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/render/html"
)

// hostile is text of another, such as the name of an object or the message of a webhook.
const hostile = `</script><script>alert(1)</script><img src=x onerror="alert(2)">`

func written(t *testing.T, p html.Page) string {
	t.Helper()
	var out bytes.Buffer
	if err := html.Write(&out, p); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func full() html.Page {
	cell := render.Cell{Text: hostile, Tone: render.Bad}
	return html.Page{
		Title: hostile, Lead: hostile, Facts: []html.Fact{{Name: hostile, Value: hostile}},
		Tiles:     []html.Tile{{Value: hostile, Label: hostile, Tone: render.Good}},
		BarsTitle: hostile, BarsLead: hostile,
		Bars: []html.Bar{{Label: hostile, Before: html.Stack{Name: hostile, Parts: []html.Part{{Label: hostile, Count: 1, Tone: render.Bad}}}}},
		Sections: []html.Section{{ID: "crds", Title: hostile, Lead: hostile, Grid: render.Grid{Header: []string{hostile, hostile, hostile}, Key: 1, Rows: [][]render.Cell{{
			cell, {Text: hostile, Problems: []render.ObjectProblem{{Object: hostile + "1", Problem: render.Problem{Reason: hostile, Message: hostile, Remedy: hostile}}}}, {Text: hostile, Code: true},
		}}}}},
	}
}

// TestTextIsEscaped: what a cluster contains is text in every place of the page.
func TestTextIsEscaped(t *testing.T) {
	text := written(t, full())
	if strings.Contains(text, "<img") || strings.Contains(text, "<script>alert") {
		t.Errorf("the page has markup of others:\n%s", text)
	}
	if n := strings.Count(text, "&lt;img src=x"); n < 17 {
		t.Errorf("the page has the text %d times, want it in each of 17 places", n)
	}
}

// TestPageNeedsNoNetwork: it has no address of anything, and the policy would not let it load any.
func TestPageNeedsNoNetwork(t *testing.T) {
	text := written(t, full())
	for _, found := range regexp.MustCompile(`(?:href|src)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(found[1], "#") {
			t.Errorf("the page refers to %s", found[1])
		}
	}
	for _, want := range []string{"default-src 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(strings.ReplaceAll(text, "&#39;", "'"), want) {
			t.Errorf("the content security policy lacks %s", want)
		}
	}
	if regexp.MustCompile(`<\w+(?:\s+[\w-]+(?:="[^"]*")?)*\s+(style|on[a-z]+)=`).MatchString(text) {
		t.Error("the page has a style or a handler in an attribute, which the policy forbids")
	}
}

// TestBarsKeepTheirLength: few things among many are seen, and the bar is not longer for it.
func TestBarsKeepTheirLength(t *testing.T) {
	p := full()
	p.Bars = []html.Bar{{Before: html.Stack{Parts: []html.Part{{Count: 100000, Tone: render.Good}, {Count: 0, Tone: render.Attention}, {Count: 1, Tone: render.Bad}}}}}
	text := written(t, p)
	rect := regexp.MustCompile(`<rect class="(good|bad|attention)" x="([0-9.]+)" y="0" width="([0-9.]+)"`).FindAllStringSubmatch(text, -1)
	if len(rect) != 2 {
		t.Fatalf("the bar has %d parts, want 2: %v", len(rect), rect)
	}
	if !strings.HasPrefix(rect[0][3], "597.") || !strings.HasPrefix(rect[1][3], "2.9") {
		t.Errorf("the widths are %s and %s, want about 597 and 3", rect[0][3], rect[1][3])
	}
}

// TestCommandsStandOnce: rows with the same command are together, and the command is above them; one of a single row is below it.
func TestCommandsStandOnce(t *testing.T) {
	row := func(name, command string) []render.Cell {
		return []render.Cell{{Text: name}, {Text: command, Code: command != ""}}
	}
	text := written(t, html.Page{Sections: []html.Section{{ID: "crds", Grid: render.Grid{Header: []string{"Name", "Next"}, Rows: [][]render.Cell{
		row("one", "godwit run --all"), row("two", "godwit plan two"), row("three", "godwit run --all"), row("four", ""),
	}}}}})
	if n := strings.Count(text, `aria-label="Copy godwit run --all"`); n != 1 {
		t.Errorf("the page has the command %d times, want it once", n)
	}
	if strings.Contains(text, ">Next</th>") {
		t.Error("the command is a column, and no line of its own")
	}
	order := regexp.MustCompile(`for these 2 rows(?s:.*)>one<(?s:.*)>three<(?s:.*)>two<(?s:.*)Copy godwit plan two(?s:.*)>four<`)
	if !order.MatchString(text) {
		t.Errorf("rows and commands have another order:\n%s", text)
	}
}

// TestNamesBreakAtSeparators: a browser breaks a line where the page says so, and not within a word.
func TestNamesBreakAtSeparators(t *testing.T) {
	checksum := strings.Repeat("0123456789abcdef", 4)
	for text, want := range map[string]string{
		"crds of example.com":                   "crds of example.com",
		"widgets.longgroup.example.com":         "widgets<wbr>.longgroup<wbr>.example<wbr>.com",
		"a-namespace-of-shop/widgets-of-a-shop": "a-namespace-of-shop/<wbr>widgets-of-a-shop",
		"kube-system":                           `<span class="whole">kube-system</span>`,
		"godwit --context=east":                 `godwit <span class="whole">--context=east</span>`,
		strings.Repeat("a", 63):                 strings.Repeat("a", 63),
		checksum:                                "0123456789abcdef<wbr>0123456789abcdef<wbr>0123456789abcdef<wbr>0123456789abcdef",
		"... and so on, at the end.":            "... and so on, at the end.",
	} {
		if got := written(t, html.Page{Facts: []html.Fact{{Value: text}}}); !strings.Contains(got, "<dd>"+want+"</dd>") {
			t.Errorf("%s: want %s in\n%s", text, want, got)
		}
	}
}
