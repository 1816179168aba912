package decision

import (
	"strings"
	"testing"
	"time"
)

func TestNotSettledErrorNamesTheServersThatItWaitsFor(t *testing.T) {
	a, b := Server{Name: "apiserver-a"}, Server{Name: "apiserver-b", Host: "cp-2"}
	cases := map[string]struct {
		reason    string
		err       NotSettledError
		want, not []string
	}{
		"stale":   {"the stale lease is what a user can fix", NotSettledError{Servers: []Server{a, b}, Stale: []Server{b}}, []string{"apiserver-b", "cp-2"}, []string{"apiserver-a"}},
		"waiting": {"all of them", NotSettledError{Servers: []Server{a, b}}, []string{"apiserver-a", "apiserver-b"}, nil},
		"time":    {"how long it takes", NotSettledError{Wait: 42 * time.Second}, []string{"42s"}, []string{"API server"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, part := range tc.want {
				if !strings.Contains(tc.err.Error(), part) {
					t.Errorf("%s\n%q does not name %q", tc.reason, tc.err.Error(), part)
				}
			}
			for _, part := range tc.not {
				if strings.Contains(tc.err.Error(), part) {
					t.Errorf("%s\n%q names %q", tc.reason, tc.err.Error(), part)
				}
			}
		})
	}
}
