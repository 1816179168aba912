package handover

import (
	"slices"

	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/internal/evidence"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
)

// Pair is a managed resource with its replacement.
type Pair struct {
	From, To Object
	// ExternalName is the name of their external resource.
	ExternalName string
}

// GetNamespace makes a Pair an object of package walk.
func (p Pair) GetNamespace() string { return p.To.Namespace }

// GetName makes a Pair an object of package walk.
func (p Pair) GetName() string { return p.To.Name }

// side has the facts of one of the two.
type side struct {
	exists, deleting, paused bool
	name                     *string
	policies                 []string
	synced                   managed.Condition
	// identity has a hash of each field of status.atProvider that may identify the external resource.
	identity map[string]string
	// proving are the fields whose values identify an external resource, and do not follow from its name.
	proving []string
	// busy means that the provider may write although the managed resource is paused.
	busy bool
	// mayDelete means that the deletion of the managed resource deletes the external resource.
	mayDelete bool
	// renaming means that a renaming has not ended.
	renaming bool
	// created means that the provider has created an external resource, or has begun to.
	created bool
	// source is the field manager that applies the management policies or the pause; empty without one.
	source     string
	journal    *journal
	journalErr error
}

func sideOf(m managed.Resource, identity managed.Identity, sources []string) side {
	if m.Unstructured == nil {
		return side{}
	}
	s := side{
		exists: true, deleting: m.GetDeletionTimestamp() != nil, paused: m.Paused(), name: m.ExternalName(), policies: m.Policies(),
		synced: m.Synced(), identity: identity.Hashes(m), proving: evidence.Proving(m.Unstructured), busy: m.Busy(),
		created: m.Created(), source: fleet.StepsOwner(m.Unstructured, sources),
	}
	s.journal, s.journalErr = readJournal(m)
	s.mayDelete = m.MayDelete(s.before())
	to, problem := fleet.Unfinished(fleet.Kind{}, m.Unstructured)
	s.renaming = to != "" || problem != nil
	return s
}

// before returns the management policies without those of a handover that was returned.
func (s side) before() []string {
	if s.in(phaseReturned) {
		return s.journal.Policies
	}
	return s.policies
}

// observes reports whether the provider may only observe.
func (s side) observes() bool { return slices.Equal(s.policies, managed.ObserveOnly) }

// rests reports whether the provider certainly writes nothing: it has reported a pause, or may only observe, or the managed resource does
// not exist.
func (s side) rests() bool { return !s.exists || s.reportsPause() || s.observes() }

// mayWrite reports whether the provider may create, change or delete the external resource.
func (s side) mayWrite() bool { return s.exists && !s.paused && !s.observes() }

func (s side) has(name string) bool { return s.name != nil && *s.name == name }

func (s side) nameText() string {
	if s.name == nil {
		return ""
	}
	return *s.name
}

func (s side) reportsPause() bool { return s.paused && s.synced.Reason == managed.ReconcilePaused }

// in reports whether the journal has a phase.
func (s side) in(p phase) bool { return s.journal != nil && s.journal.Phase == p }

// situation has the facts for the decisions about a pair.
type situation struct {
	pair     Pair
	from, to side
	// chosen means that the user has chosen the fields of the identity.
	chosen bool
	// overwrite means that the replacement's name may be replaced.
	overwrite bool
	// expired means that the time of a provider to answer is over.
	expired bool
}

// held reports whether the original waits for this replacement, and not for another one.
func (s situation) held() bool {
	return s.from.journal != nil && !s.from.journal.replacement() && s.from.journal.Other == s.pair.To
}

// compare compares the identity of the original with that of the replacement, whose kind may have other fields. It returns the
// fields that differ, and whether those that are equal identify the external resource.
func (s situation) compare() (differing []string, proven bool) {
	before, after := s.to.journal.Identity, s.to.identity
	var common []string
	for field, hash := range before {
		switch other, both := after[field]; {
		case !both:
		case other == hash:
			common = append(common, field)
		default:
			differing = append(differing, field)
		}
	}
	slices.Sort(differing)
	if s.chosen {
		return differing, len(common) > 0 && len(common) == len(before)
	}
	return differing, slices.ContainsFunc(common, func(field string) bool { return slices.Contains(s.to.proving, field) })
}
