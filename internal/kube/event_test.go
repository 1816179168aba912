package kube

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNotesFitIntoAnEvent(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("a", maxNote), strings.Repeat("a", maxNote+1), strings.Repeat("ß", maxNote), strings.Repeat("a€", maxNote)} {
		got := EventNote(text)
		if len(got) > maxNote || !utf8.ValidString(got) {
			t.Errorf("a note of %d bytes, valid: %v", len(got), utf8.ValidString(got))
		}
		if len(text) <= maxNote && got != text {
			t.Errorf("a text of %d bytes was cut to %d", len(text), len(got))
		}
	}
}
