package main

import (
	"testing"

	"github.com/godwit-dev/godwit/crdmigrator/markers"
)

func TestEveryTypeIsMigratedOrExcluded(t *testing.T) {
	markers.Require(t, markers.Options{}, "./api/...")
}
