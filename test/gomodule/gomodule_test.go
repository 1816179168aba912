package gomodule_test

import (
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/test/gomodule"
)

func TestDirSaysWhatToDo(t *testing.T) {
	t.Run("no such module", func(t *testing.T) {
		_, err := gomodule.Dir(t.Context(), "no such module@v1.0.0")
		if err == nil || !strings.Contains(err.Error(), "GOWORK=off go mod download no such module@v1.0.0") {
			t.Errorf("error %v, want one with the command to try", err)
		}
	})
	t.Run("no go command", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := gomodule.Dir(t.Context(), "example.com/module@v1.0.0")
		if err == nil || !strings.Contains(err.Error(), "install Go") {
			t.Errorf("error %v, want one that says what to install", err)
		}
	})
}
