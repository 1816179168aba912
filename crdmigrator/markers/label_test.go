package markers

import (
	"testing"

	"github.com/godwit-dev/godwit/crdmigrator"
)

// TestDefaultLabelIsTheReconcilers compares the label that Check requires with the reconciler's.
func TestDefaultLabelIsTheReconcilers(t *testing.T) {
	if want := crdmigrator.AutoMigrateLabel + "=" + crdmigrator.AutoMigrateValue; DefaultLabel != want {
		t.Errorf("Check requires the label %s, the reconciler selects %s", DefaultLabel, want)
	}
}
