package hub

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMessage bounds what is kept of a message of an agent, in bytes: a ConfigMap has up to
// 1 MiB for 250 clusters, and an agent is not trusted to be brief.
const maxMessage = 240

// clip makes a message of an agent one line of bounded length.
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
