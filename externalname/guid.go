package externalname

import "strings"

// GUIDOption changes the form of a GUID.
type GUIDOption func(*guidForm)

// Hex32 means that a GUID is written as 32 hexadecimal digits without hyphens.
func Hex32() GUIDOption { return func(f *guidForm) { f.hex32 = true } }

type guidForm struct{ hex32 bool }

func (f guidForm) expected() string {
	if f.hex32 {
		return "a GUID of 32 hexadecimal digits without hyphens"
	}
	return "a GUID such as 0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11"
}

// matches reports whether a text in lower case is a GUID. It compares bytes, because
// parsers of UUIDs accept several forms.
func (f guidForm) matches(text string) bool {
	digits := text
	if !f.hex32 {
		if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
			return false
		}
		digits = text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	}
	return len(digits) == 32 && strings.Trim(digits, "0123456789abcdef") == ""
}
