package markers

import (
	"testing"

	"github.com/godwit-dev/godwit/crdmigrator"
)

// What Check demands of the types is what the reconciler looks for.
func TestDefaultLabelIsTheReconcilers(t *testing.T) {
	if want := crdmigrator.AutoMigrateLabel + "=" + crdmigrator.AutoMigrateValue; DefaultLabel != want {
		t.Errorf("types are to be marked with %s, and %s is looked for", DefaultLabel, want)
	}
}
