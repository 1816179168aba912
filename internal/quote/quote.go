// Package quote prepares foreign text, such as a webhook's answer or a user name, and numbers for messages and commands.
package quote

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lineBytes bounds a quoted answer in a message: a webhook's answer may have any length.
const lineBytes = 300

// Line returns an answer as one line of bounded length.
func Line(words string) string {
	if line := Clip(strings.Join(strings.Fields(words), " "), lineBytes); line != "" {
		return line
	}
	return "(no message)"
}

// Count returns a number with its noun.
func Count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Printable returns a text as one line without unprintable characters, such as escape sequences of a remote process. It
// drops invalid UTF-8.
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

// Clip cuts a text to a number of bytes, including the ellipsis, between two characters. It cuts invalid UTF-8
// anywhere.
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
