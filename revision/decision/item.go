package decision

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/revision/reference"
)

// Action is what is to be done about one revision.
type Action string

const (
	// UpToDate means that data and labels are at the target version.
	UpToDate Action = "UpToDate"
	// Relabel means that the data is at the target version, and the labels are not.
	Relabel Action = "Relabel"
	// Upgrade means that a revision at the target version is to replace it, or has replaced it
	// and this one is retained.
	Upgrade Action = "Upgrade"
	// Deferred means that the upgrade waits for a referrer or for another client.
	Deferred Action = "Deferred"
	// Blocked means that user action is required.
	Blocked Action = "Blocked"
	// Unreferenced means that no object refers to it.
	Unreferenced Action = "Unreferenced"
	// Unmanaged: it is none of the family.
	Unmanaged Action = "Unmanaged"
)

// OnRunning says what happens to a revision that a running object uses.
type OnRunning string

const (
	// Defer leaves it as it is until no running object uses it, unless the installed software can't
	// read it.
	Defer OnRunning = "Defer"
	// Hold upgrades it, and keeps the source until no running object uses it.
	Hold OnRunning = "Hold"
)

// MinRetention is the least time that a source is kept after the last reference to
// it is gone: what a controller's stale cache may still want.
const MinRetention = 10 * time.Minute

// DefaultRetention is how long a source is kept unless a policy says otherwise.
const DefaultRetention = time.Hour

// Policy is what people decide about upgrades. The zero value works.
type Policy struct {
	// Target is a version; empty means the storage version of the CRD.
	Target string
	// OnRunning defaults to [Defer].
	OnRunning OnRunning
	// AllowLosses continues where the target version does not have some fields. They
	// are carried through, but nothing reads them there.
	AllowLosses bool
	// Retain keeps sources for good.
	Retain bool
	// Retention is how long sources are kept otherwise; 0 means DefaultRetention, and
	// less than MinRetention means that.
	Retention time.Duration
}

// EffectiveRetention is Retention with its default and its minimum.
func (p Policy) EffectiveRetention() time.Duration {
	if p.Retention == 0 {
		return DefaultRetention
	}
	return max(p.Retention, MinRetention)
}

// target of an object at a version: the one that is asked for, or else the storage version.
// Where that is a later one than the family knows, an object that is not at it goes to the
// newest version that is served and that it can be converted to.
func (d CRD) target(asked, version string, known Description) string {
	if asked != "" {
		return asked
	}
	later := version != d.StorageVersion && !slices.Contains(known.Versions, d.StorageVersion)
	if reachable := d.Reachable(known.Targets); later && len(reachable) > 0 {
		return reachable[len(reachable)-1]
	}
	return d.StorageVersion
}

// Reachable are the versions that are served and that objects can be converted to.
func (d CRD) Reachable(targets []string) []string {
	var all []string
	for _, v := range targets {
		if slices.Contains(d.ServedVersions, v) {
			all = append(all, v)
		}
	}
	return all
}

// ReferenceStatus is a reference, as reports print it.
type ReferenceStatus struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Path      string `json:"path"`
	// State is New where the field names what it is to name: a revision at the target
	// version. Old where it does not yet, Fixed where it can't be written, Implied where
	// it names another revision, for which a restore needs this one.
	State string `json:"state"`
}

// States of references.
const (
	ReferenceOld     = "Old"
	ReferenceNew     = "New"
	ReferenceFixed   = "Fixed"
	ReferenceImplied = "Implied"
)

// ReferenceStatuses are references as reports print them. A reference that names target needs no write.
func ReferenceStatuses(references []reference.Reference, target string) []ReferenceStatus {
	var all []ReferenceStatus
	for _, r := range references {
		state := ReferenceOld
		switch {
		case r.ImpliedBy != "":
			state = ReferenceImplied
		case r.Fixed:
			state = ReferenceFixed
		case r.Revision == target:
			state = ReferenceNew
		}
		all = append(all, ReferenceStatus{Kind: r.Referrer.Kind, Namespace: r.Referrer.Namespace, Name: r.Referrer.Name, Path: r.Path, State: state})
	}
	return all
}

// candidates are what a user chooses from to fix a blocked revision. What is not needed is empty.
type candidates struct {
	// owners refer to the revision. One of them should be its controller.
	owners []reference.Owner
	// labels are missing. Each needs a value that only the user knows.
	labels []string
	// targets are served, and objects at older versions can be converted to them.
	targets []string
	// replacement may hold what a missing revision held. Nothing proves it.
	replacement string
}

// Item is what is to be done about one revision, and why.
type Item struct {
	Namespace  string            `json:"namespace"`
	Name       string            `json:"name"`
	UID        types.UID         `json:"uid"`
	Owner      reference.Owner   `json:"owner"`
	Version    string            `json:"version,omitempty"`
	Form       string            `json:"form,omitempty"`
	Target     string            `json:"target,omitempty"`
	Action     Action            `json:"action"`
	References []ReferenceStatus `json:"references,omitempty"`
	Losses     []string          `json:"losses,omitempty"`
	Reason     *godwit.Reason    `json:"reason,omitempty"`
	Message    string            `json:"message,omitempty"`
	// Replacement is the name of the revision that replaces it, once there is
	// one.
	Replacement string `json:"replacement,omitempty"`
	// Until is when a source that is retained may go; zero where it is not, or where
	// nothing says since when no object refers to it.
	Until time.Time `json:"until,omitzero"`
	// AtRisk means that the software that the family belongs to deletes the revision when it
	// starts or is upgraded, although the spec of an object names it.
	AtRisk bool `json:"atRisk,omitempty"`
	// Unreadable means that the installed software can't read the revision, so that waiting for an
	// object that runs with it is no option: the software can't stop that object either.
	Unreadable bool `json:"-"`
	// SharedBy are the objects that name the revision, could own revisions, and do not own this one,
	// as KIND/NAME. They lose it when its owner is deleted.
	SharedBy []string `json:"sharedBy,omitempty"`
	// RolledBack is when a rollback to it was asked for; zero if none was.
	RolledBack time.Time `json:"rolledBack,omitzero"`

	candidates *candidates // of a revision that is Blocked; nil if there are none
}

// WithCandidate is the item of a missing revision, with one that may hold the same.
func (i Item) WithCandidate(replacement string) Item {
	i.candidates = &candidates{replacement: replacement}
	return i
}

// ByName compares two items by the names of their revisions.
func ByName(a, b Item) int { return strings.Compare(a.Name, b.Name) }

// InDanger reports whether other software may delete the revision at any time. The installed software does so if it is at risk. The
// one before may still run during its update: it could read what the installed one can't, and deletes it.
func (i Item) InDanger() bool { return i.AtRisk || i.Unreadable }
