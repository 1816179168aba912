package markers_test

import (
	"testing"

	"github.com/godwit-dev/godwit/crdmigrator/markers"
)

// TestOwnKindsAreMigrated: what we ask of other operators holds for our own API.
func TestOwnKindsAreMigrated(t *testing.T) {
	markers.Require(t, markers.Options{}, "../../api/...")
}
