package resource

import (
	"testing"

	"github.com/godwit-dev/godwit/internal/format/formattest"
)

// TestJournalIsOfTheFormOfTheOldestRelease: see test/resource for what reads it.
func TestJournalIsOfTheFormOfTheOldestRelease(t *testing.T) {
	r := formattest.Same[storedRecord](t, formattest.Frozen(t, "resource-run.json"))
	if !r.holds(r.Servers, r.Configuration) {
		t.Errorf("%+v does not hold for what it says itself", r)
	}
}
