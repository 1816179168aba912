package crdmigration

import (
	"slices"
	"time"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/preflight"
	"github.com/godwit-dev/godwit/walk"
)

// withDefaults returns the spec of a migration, with the manager's configuration for each field that is not set.
func withDefaults(spec, defaults v1alpha1.CRDMigrationSpec) v1alpha1.CRDMigrationSpec {
	if len(spec.Phases) == 0 {
		spec.Phases = defaults.Phases
	}
	if spec.Write == "" {
		spec.Write = defaults.Write
	}
	if spec.Settle == nil {
		spec.Settle = defaults.Settle
	}
	if spec.Trim == nil {
		spec.Trim = defaults.Trim
	}
	if len(spec.AcceptLosses) == 0 {
		spec.AcceptLosses = defaults.AcceptLosses
	}
	if len(spec.AcceptChanges) == 0 {
		spec.AcceptChanges = defaults.AcceptChanges
	}
	if spec.MaxInFlight == nil {
		spec.MaxInFlight = defaults.MaxInFlight
	}
	if spec.MaxWritesPerSecond == nil {
		spec.MaxWritesPerSecond = defaults.MaxWritesPerSecond
	}
	return spec
}

// options returns the options of the migrator for a spec.
func options(spec v1alpha1.CRDMigrationSpec) storageversion.Options {
	o := storageversion.Options{
		Policy:    decision.Policy{Write: decision.Write(spec.Write), SettleFromSight: true, AcceptLosses: spec.AcceptLosses, AcceptChanges: spec.AcceptChanges},
		Preflight: preflight.Changes, AskEachServer: true,
	}
	if spec.Settle != nil {
		if o.Settle = spec.Settle.Duration; o.Settle == 0 {
			o.Settle = -time.Nanosecond // none, where zero means the default
		}
	}
	o.NoTrim = !trimsStoredVersions(spec)
	for _, phase := range decision.Phases {
		if !includesPhase(spec, phase) {
			o.SkipPhases = append(o.SkipPhases, phase)
		}
	}
	return o
}

// limits returns the limits in a spec.
func limits(spec v1alpha1.CRDMigrationSpec) walk.Limits {
	var l walk.Limits
	if spec.MaxInFlight != nil {
		l.MaxInFlight = int(*spec.MaxInFlight)
	}
	if spec.MaxWritesPerSecond != nil {
		l.MaxWritesPerSecond = float64(*spec.MaxWritesPerSecond)
	}
	return l
}

// smallPage is a fifth of the page size of a command: a suspended migration stops before its next page, and a list of a
// small page does not delay other clients. It costs one request per hundred objects.
const smallPage = 100

// pageObjects returns the page size: small if the write rate is limited, and large otherwise.
func pageObjects(all float64, own walk.Limits) int64 {
	if all > 0 || own.MaxWritesPerSecond > 0 {
		return smallPage
	}
	return walk.DefaultPageObjects
}

// trimsStoredVersions reports whether the migration trims status.storedVersions. Without the rewrite, the
// version that objects are stored at is unknown.
func trimsStoredVersions(spec v1alpha1.CRDMigrationSpec) bool {
	return (spec.Trim == nil || *spec.Trim) && includesPhase(spec, decision.StorageVersionMigrationPhase)
}

// includesPhase reports whether a phase is part of the migration. A spec without phases has both.
func includesPhase(spec v1alpha1.CRDMigrationSpec, phase decision.Phase) bool {
	return len(spec.Phases) == 0 || slices.Contains(spec.Phases, v1alpha1.Phase(phase))
}
