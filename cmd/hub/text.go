package hub

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxMessage bounds a stored message of an agent, in bytes: a ConfigMap has up to 1 MiB for 250
	// clusters, and an agent may send a longer text.
	maxMessage = 240
	// maxNamed bounds the clusters that a message names.
	maxNamed = 3
)

// clip returns the message of an agent as one line of bounded length.
func clip(message string) string {
	message = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r), r == utf8.RuneError:
			return -1
		}
		return r
	}, message)
	if len(message) <= maxMessage {
		return message
	}
	end := maxMessage - len("…")
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + "…"
}

// firstNames joins the first names of a list.
func firstNames(names []string) string {
	if len(names) > maxNamed {
		return strings.Join(names[:maxNamed], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
