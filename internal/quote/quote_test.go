package quote_test

import (
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/internal/quote"
)

func TestLine(t *testing.T) {
	cases := map[string]struct {
		reason      string
		words, want string
	}{
		"one line":      {"a short text is unchanged", `webhook "a.b" denied the request`, `webhook "a.b" denied the request`},
		"several lines": {"a message is one line", "no\n\n  and\tno", "no and no"},
		"nothing":       {"an answer may be empty", " \n", "(no message)"},
		"too long":      {"a webhook may send any length", strings.Repeat("a line\n", 100), strings.Repeat("a line ", 42) + "a l…"},
		"wide":          {"no character is cut in two", strings.Repeat("ä", 200), strings.Repeat("ä", 148) + "…"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := quote.Line(tc.words); got != tc.want {
				t.Errorf("Line(%q) = %q, want %q: %s", tc.words, got, tc.want, tc.reason)
			}
		})
	}
}

func TestClip(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		limit  int
		want   string
	}{
		"short":                   {"a text within the limit is unchanged", "no", 2, "no"},
		"cut":                     {"the limit includes the ellipsis", "abcdef", 5, "ab…"},
		"a character at the cut":  {"no character is cut in two", "ab😀defg", 8, "ab…"},
		"continuation bytes only": {"no character begins before the cut", strings.Repeat("\x80", 9), 8, strings.Repeat("\x80", 5) + "…"},
		"no room for an ellipsis": {"the limit is less than the ellipsis has bytes", "abcdef", 2, "…"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := quote.Clip(tc.text, tc.limit); got != tc.want {
				t.Errorf("Clip(%q, %d) = %q, want %q: %s", tc.text, tc.limit, got, tc.want, tc.reason)
			}
		})
	}
}

func TestPrintable(t *testing.T) {
	const foreign, want = "a\n\tb\x1b[31mc\x00\xffä", "a  b[31mcä"
	if got := quote.Printable(foreign); got != want {
		t.Errorf("Printable(%q) = %q, want %q", foreign, got, want)
	}
}

func TestShell(t *testing.T) {
	cases := map[string]string{
		"jane":                    "jane",
		"system:node:cp-1":        "system:node:cp-1",
		"jane@example.com":        "jane@example.com",
		"":                        "''",
		"Jane Doe":                "'Jane Doe'",
		"O'Hara":                  `'O'\''Hara'`,
		"https://issuer/#jane$(x": "'https://issuer/#jane$(x'",
	}
	for word, want := range cases {
		if got := quote.Shell(word); got != want {
			t.Errorf("Shell(%q) = %s, want %s", word, got, want)
		}
	}
}
