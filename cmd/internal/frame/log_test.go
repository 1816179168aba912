package frame

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestCanceledRequestsAreNotLogged, since the command says that it was interrupted. All else that a library logs is written.
func TestCanceledRequestsAreNotLogged(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	l := libraryLogger(&out).WithName("client").WithValues("verb", "GET")
	l.Error(fmt.Errorf("read the body: %w", context.Canceled), "Unexpected error")
	if out.Len() > 0 {
		t.Errorf("wrote %q for a canceled request, want nothing", out.String())
	}
	l.Error(errors.New("the connection was reset"), "Unexpected error")
	for _, want := range []string{"Unexpected error", "the connection was reset", `verb="GET"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("wrote %q, want %q in it", out.String(), want)
		}
	}
}
