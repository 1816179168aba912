// Package quote puts the words of others, such as a webhook's answer or a user's name,
// into our messages and commands.
package quote

import (
	"strings"
	"unicode/utf8"
)

// lineBytes bounds what a message quotes of an answer: a webhook may say anything.
const lineBytes = 300

// Line makes one line of bounded length of an answer.
func Line(words string) string {
	if line := Clip(strings.Join(strings.Fields(words), " "), lineBytes); line != "" {
		return line
	}
	return "without a word"
}

// Clip cuts a text to a number of bytes, and no character in two.
func Clip(text string, limit int) string {
	const more = "…"
	if len(text) <= limit {
		return text
	}
	end := limit - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}

// Shell makes a word safe for a POSIX shell. What a certificate or an identity provider
// calls a user may hold any character.
func Shell(word string) string {
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func plain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
}
