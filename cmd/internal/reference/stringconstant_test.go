package main

import (
	"path/filepath"
	"testing"
)

// TestStringConstant: users see these strings in a cluster, so that a change of one has to show in the surface.
func TestStringConstant(t *testing.T) {
	for name, test := range map[string]struct {
		folder, constant, want string
	}{
		"a literal":                    {"crdmigrator", "AutoMigrateLabel", "godwit.dev/auto-migrate-storage-version"},
		"a constant of another folder": {"crdmigrator", "WriteStatusApply", "StatusApply"},
		"and of a further one":         {"crdmigrator", "CheckpointAnnotation", "godwit.dev/migration-checkpoint"},
		"no string":                    {"walk", "DefaultMaxInFlight", ""},
		"no constant":                  {"walk", "Key", ""},
	} {
		got, ok := stringConstant(filepath.Join(repository, test.folder), test.constant)
		if got != test.want || ok != (test.want != "") {
			t.Errorf("%s: %s = %q, %t, want %q", name, test.constant, got, ok, test.want)
		}
	}
}
