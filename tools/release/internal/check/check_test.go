package check

import (
	"strings"
	"testing"
)

func TestSame(t *testing.T) {
	const want = "1  a\n2  b\n"
	for got, problem := range map[string]string{
		want:               "",
		"2  b\n1  a\n":     "",
		"1  a\n3  b\n":     "b differs",
		"1  a\n":           "b differs",
		"1  a\n2  b\n3 \n": "is not in the list",
		"":                 "differs",
	} {
		err := same([]byte(want), []byte(got))
		if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v, want %q", got, err, problem)
		}
	}
}
