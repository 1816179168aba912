package agent

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/godwit-dev/godwit/cmd/hub"
)

// TestRetriedErrorIsLogged once, and again when it is another one: until the end of the phase, nothing else tells of it.
func TestRetriedErrorIsLogged(t *testing.T) {
	var lines []string
	ctx := logr.NewContext(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	o := order{Order: hub.Order{Action: hub.InstallBootstrap}}
	for _, text := range []string{"namespace missing", "namespace missing", "quota exceeded"} {
		o.logRetry(ctx, errors.New(text))
	}
	want := []string{
		`"msg"="An action failed, and is tried again" "error"="namespace missing" "action"="InstallBootstrap"`,
		`"msg"="An action failed, and is tried again" "error"="quota exceeded" "action"="InstallBootstrap"`,
	}
	for i := range lines { // the level is first
		if at := len(lines[i]) - len(want[min(i, 1)]); at > 0 {
			lines[i] = lines[i][at:]
		}
	}
	if !slices.Equal(lines, want) {
		t.Errorf("logged %q, want %q", lines, want)
	}
}
