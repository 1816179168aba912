// Package quote puts foreign text, such as a webhook's answer or a user's name, into our
// messages and commands.
package quote

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// lineBytes bounds what a message quotes of an answer, which a webhook may make any length.
const lineBytes = 300

// Line makes an answer one line of bounded length.
func Line(words string) string {
	if line := Clip(strings.Join(strings.Fields(words), " "), lineBytes); line != "" {
		return line
	}
	return "(no message)"
}

// Printable makes a text one line without characters that a terminal or a log does not print, such as escape sequences of a
// remote process. Bytes that are no UTF-8 are dropped.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r), r == utf8.RuneError:
			return -1
		}
		return r
	}, text)
}

// Clip cuts a text to a number of bytes, the ellipsis included, between two characters. Bytes
// that are no UTF-8 are cut anywhere.
func Clip(text string, limit int) string {
	const more = "…"
	if len(text) <= limit {
		return text
	}
	end := max(limit-len(more), 0)
	for begin := end; begin >= 0 && begin > end-utf8.UTFMax; begin-- {
		if utf8.RuneStart(text[begin]) {
			return text[:begin] + more
		}
	}
	return text[:end] + more
}

// Shell quotes a word for a POSIX shell. The user name of a certificate or an identity
// provider may contain any character.
func Shell(word string) string {
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func plain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
}
