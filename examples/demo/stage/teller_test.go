package stage

import (
	"bytes"
	"strings"
	"testing"
)

// TestParagraphsBreakBetweenWords: on a terminal, a long message is indented in each of its lines, and no word breaks. A table stays whole.
func TestParagraphsBreakBetweenWords(t *testing.T) {
	for reason, c := range map[string]struct {
		width      int
		text, want string
	}{
		"a message":      {23, "one two three four five six", "   one two three four\n   five six\n"},
		"no terminal":    {0, "one two three four five six", "   one two three four five six\n"},
		"a table":        {10, "NAME   STATE   OBJECTS", "   NAME   STATE   OBJECTS\n"},
		"a long name":    {10, "gateways.gateway.networking.k8s.io", "   gateways.gateway.networking.k8s.io\n"},
		"coloured text":  {23, green + "one two three four" + plain, "   " + green + "one two three four" + plain + "\n"},
		"an empty line":  {23, "one\n\ntwo", "   one\n\n   two\n"},
		"text that fits": {23, "one two three fourfour", "   one two three\n   fourfour\n"},
		"exactly a line": {23, strings.Repeat("a ", 9) + "ab", "   " + strings.Repeat("a ", 9) + "ab\n"},
	} {
		var out bytes.Buffer
		(&Teller{out: &out, width: c.width}).Paragraph("%s", c.text)
		if out.String() != c.want {
			t.Errorf("%s: printed %q, want %q", reason, out.String(), c.want)
		}
	}
}
