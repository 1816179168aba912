// Package malformed derives names that a provider has to refuse from a name that it accepts.
package malformed

import (
	"strings"

	"github.com/godwit-dev/godwit/externalname"
)

// Names returns variants of a valid name, each in one segment. It returns none if the name does not have the shape.
func Names(shape externalname.Shape, valid string) []string {
	parts := strings.Split(valid, "/")
	if valid == "" || len(parts) != len(shape.Segments) {
		return nil
	}
	list := []string{valid + "/surplus"}
	for i, segment := range shape.Segments {
		for _, text := range wrongTexts(segment, parts[i]) {
			list = append(list, replaced(parts, i, text))
		}
		if !segment.Optional && len(parts) > 1 {
			list = append(list, replaced(parts, i, ""), replaced(parts, i, "  "))
		}
	}
	return append(list, replaced(parts, len(parts)-1, strings.Repeat("a", 4*shape.MaxBytes)))
}

// wrongTexts are variants of a valid text that a careless parser accepts.
func wrongTexts(segment externalname.SegmentShape, valid string) []string {
	wrong := []string{"..", valid + "\x1b[2J"}
	if segment.GUID {
		other := strings.ReplaceAll(valid, "-", "")
		if other == valid {
			other = strings.Join([]string{valid[:8], valid[8:12], valid[12:16], valid[16:20], valid[20:]}, "-")
		}
		wrong = append(wrong, "not-a-guid", "urn:uuid:"+valid, "{"+valid+"}", other)
	}
	if len(segment.Values) > 0 {
		wrong = append(wrong, strings.Join(segment.Values, "-")+"-none")
	}
	return wrong
}

func replaced(parts []string, i int, text string) string {
	list := append([]string{}, parts...)
	list[i] = text
	return strings.Join(list, "/")
}
