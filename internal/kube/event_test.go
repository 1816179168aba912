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
			t.Errorf("the note has %d bytes, valid UTF-8: %v; want at most %d, true", len(got), utf8.ValidString(got), maxNote)
		}
		if len(text) <= maxNote && got != text {
			t.Errorf("a text of %d bytes was cut to %d, want it unchanged", len(text), len(got))
		}
	}
}
