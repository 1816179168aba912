package externalname

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/godwit-dev/godwit"
)

// separator joins segments, as existing providers do.
const separator = "/"

const upperHex = "0123456789ABCDEF"

// escape writes one segment. It escapes as little as possible, so that clean names of
// existing providers stay as they are: the separator, the percent sign, control characters,
// and spaces at either end, which users and tools trim.
func escape(text string) string {
	left, right := outerSpaces(text)
	if left == 0 && right == len(text) && !strings.ContainsFunc(text, mustEscape) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		if i < left || i >= right || mustEscape(r) {
			for _, c := range []byte(string(r)) {
				b.WriteByte('%')
				b.WriteByte(upperHex[c>>4])
				b.WriteByte(upperHex[c&15])
			}
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func mustEscape(r rune) bool { return r == '/' || r == '%' || unicode.IsControl(r) }

// outerSpaces returns where the text without outer spaces begins and ends.
func outerSpaces(text string) (left, right int) {
	left = len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	right = max(left, len(strings.TrimRightFunc(text, unicode.IsSpace)))
	return left, right
}

// unescape reads one segment. It accepts escapes that escape would not write: the caller formats the key again to check
// whether a name is canonical.
func unescape(text string) (string, *godwit.Reason) {
	if !strings.Contains(text, "%") {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if i+2 >= len(text) {
			return "", ReasonMalformedEscape
		}
		high, low := hexDigit(text[i+1]), hexDigit(text[i+2])
		if high < 0 || low < 0 {
			return "", ReasonMalformedEscape
		}
		b.WriteByte(byte(high<<4 | low))
		i += 2
	}
	if !utf8.ValidString(b.String()) {
		return "", ReasonNotUTF8
	}
	return b.String(), nil
}

// hexDigit returns the value of a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
