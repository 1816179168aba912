package frame

import "testing"

func TestBytesFlag(t *testing.T) {
	cases := map[string]struct {
		text, reason string
		want         int64
		shown        string // empty: refused
	}{
		"binary":        {"512Mi", "as Kubernetes counts memory", 512 << 20, "512Mi"},
		"decimal":       {"2G", "shown in whole powers of two", 2_000_000_000, "1953125Ki"},
		"with a point":  {"1.5Gi", "whole bytes", 3 << 29, "1536Mi"},
		"the least":     {"1Mi", "room for an ordinary object", 1 << 20, "1Mi"},
		"none":          {"none", "no limit must be said", -1, "none"},
		"zero":          {"0", "it could mean either", 0, ""},
		"below zero":    {"-512Mi", "so could this", 0, ""},
		"no unit":       {"512", "512 bytes would be one object each five minutes", 0, ""},
		"MB":            {"512MB", "not a unit of Kubernetes", 0, ""},
		"milli":         {"512m", "m is a thousandth, whatever was meant", 0, ""},
		"a word":        {"unlimited", "there is one word for it", 0, ""},
		"beyond 64 bit": {"1e30", "it can't be counted", 0, ""},
		"empty":         {"", "a variable that was not set", 0, ""},
	}
	for name, tc := range cases {
		var b BytesFlag
		err := b.Set(tc.text)
		if (err == nil) != (tc.shown != "") || int64(b) != tc.want || err == nil && b.String() != tc.shown {
			t.Errorf("%s: Set(%q) makes %d, shown as %s, error %v; want %d, shown as %q: %s", name, tc.text, b, b.String(), err, tc.want, tc.shown, tc.reason)
		}
	}
}
