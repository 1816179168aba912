package markers_test

import (
	"testing"

	"github.com/godwit-dev/godwit/crdmigrator/markers"
)

// TestOwnKindsAreMigrated checks the markers of our own API.
func TestOwnKindsAreMigrated(t *testing.T) {
	markers.Require(t, markers.Options{}, "../../api/...")
}
