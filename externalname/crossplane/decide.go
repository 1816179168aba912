package crossplane

import (
	"errors"

	"github.com/godwit-dev/godwit/externalname"
)

// facts are the facts of an observation: first those of the object, later the answers of the external system. Names are
// canonical.
type facts struct {
	// name is the name in the annotation, or empty.
	name string
	// invalid is why the annotation can't be read.
	invalid error
	// hint is true for a legacy name that does not identify the resource by itself.
	hint bool
	// bound is the name under which the external resource was last seen.
	bound string
	// renaming is the name that an update was about to give.
	renaming string
	// operation is the ID of the operation that creates the resource.
	operation string
	// creating is true if a creation has begun and its outcome is not recorded.
	creating bool
	// fresh is true if a request of that creation may still be in flight.
	fresh bool

	deleting bool
	// mustExist is true if the policies allow neither a creation nor observing alone.
	mustExist bool
	// specInvalid is why the key in the spec can't become a name.
	specInvalid error
	// rules are those of the kind.
	rules rules

	// gets are the answers of Get by name.
	gets map[string]presence
	// found are the matches of Find; nil before Find was called.
	found *[]match
	// job is the state of the operation, and jobName the name of the resource that it has created.
	job     job
	jobName string
	// jobSearched is true if the external system has no operation of this object.
	jobSearched bool
}

// rules are the declarations of a kind's author.
type rules struct {
	canFind, canProve, canFindOperation bool
	findUnnamed, importMustExist        bool
}

type presence uint8

const (
	present presence = iota + 1
	absent
)

type job uint8

const (
	jobRunning job = iota + 1
	jobEnded
	jobFailed
	jobForgotten
)

type match struct {
	name string
	ours bool
}

// action is the next action of an observation: a question to the external system, or the end.
type action string

const (
	askGet           action = "Get"
	askFind          action = "Find"
	askOperation     action = "AwaitOperation"
	searchOperation  action = "FindOperation"
	bindJob          action = "BindJob"
	reportPresent    action = "Present"
	reportAbsent     action = "Absent"
	reportInProgress action = "InProgress"
	refuse           action = "Refuse"
)

// decision is an action on a name, or a refusal.
type decision struct {
	action action
	name   string
	err    error
}

// decide implements the contract of external names. It is pure: the caller adds the answer to a question to the facts,
// and calls decide again.
func decide(f facts) decision {
	switch {
	case f.invalid != nil:
		return decision{action: refuse, err: f.invalid}
	case f.operation != "":
		return f.decideByOperation()
	case f.name != "":
		return f.decideByName()
	}
	return f.decideUnnamed()
}

func (f facts) decideByOperation() decision {
	switch f.job {
	case jobRunning:
		return decision{action: reportInProgress}
	case jobEnded:
		return decision{action: bindJob, name: f.jobName}
	case jobFailed:
		f.operation, f.creating = "", false
		return decide(f)
	case jobForgotten:
		return f.decideRecovery()
	}
	return decision{action: askOperation}
}

// decideByName looks the resource up only by its name.
func (f facts) decideByName() decision {
	switch f.gets[f.name] {
	case present:
		return decision{action: reportPresent, name: f.name}
	case absent:
		return f.decideNotFound()
	}
	return decision{action: askGet, name: f.name}
}

// decideNotFound decides that a name without a resource is drift, unless the resource exists under another name that
// this object has recorded.
func (f facts) decideNotFound() decision {
	if f.renaming != "" && f.renaming != f.name {
		if d := f.confirm(f.renaming); d.action != reportAbsent {
			return d
		}
	}
	if d, changed := f.decideNameChanged(); changed {
		return d
	}
	if f.creating {
		return f.decideRecovery()
	}
	if f.bound == "" && f.rules.importMustExist && !f.deleting {
		return decision{action: refuse, err: &NeverFoundError{Name: f.name}}
	}
	return f.decideMissing()
}

// decideNameChanged looks for the resource under the name under which it was last seen.
func (f facts) decideNameChanged() (decision, bool) {
	if f.bound == "" || f.bound == f.name {
		return decision{}, false
	}
	switch f.gets[f.bound] {
	case present:
		return decision{action: refuse, err: &NameChangedError{Name: f.name, Bound: f.bound}}, true
	case absent:
		return decision{}, false
	}
	return decision{action: askGet, name: f.bound}, true
}

func (f facts) decideUnnamed() decision {
	if d, changed := f.decideNameChanged(); changed {
		return d
	}
	if f.creating {
		return f.decideRecovery()
	}
	if !f.hint && !f.rules.findUnnamed {
		return f.decideMissing()
	}
	if f.found == nil {
		return decision{action: askFind}
	}
	switch matches := *f.found; len(matches) {
	case 0:
		return f.decideMissing()
	case 1:
		return f.decideConfirmed(matches[0].name)
	}
	return decision{action: refuse, err: &MultipleMatchesError{Names: names(*f.found)}}
}

// decideRecovery decides after a creation whose outcome is not recorded. It adopts only a resource that is proven to
// come from that creation, and creates again only if none does.
func (f facts) decideRecovery() decision {
	if f.rules.canFindOperation && !f.jobSearched {
		return decision{action: searchOperation}
	}
	if !f.rules.canFind {
		return decision{action: refuse, err: errUnknownOutcome}
	}
	if f.found == nil {
		return decision{action: askFind}
	}
	var ours []match
	for _, m := range *f.found {
		if m.ours {
			ours = append(ours, m)
		}
	}
	switch {
	case len(ours) == 1:
		return f.decideConfirmed(ours[0].name)
	case len(ours) > 1:
		return decision{action: refuse, err: &MultipleMatchesError{Names: names(ours)}}
	case f.fresh:
		return decision{action: refuse, err: errUnknownOutcome}
	case len(*f.found) == 0, f.deleting && f.rules.canProve:
		return f.decideMissing()
	}
	return decision{action: refuse, err: &AdoptionRefusedError{Names: names(*f.found)}}
}

// confirm checks whether a name exists; decideConfirmed decides on the answer.
func (f facts) confirm(name string) decision {
	switch f.gets[name] {
	case present:
		return decision{action: reportPresent, name: name}
	case absent:
		return decision{action: reportAbsent}
	}
	return decision{action: askGet, name: name}
}

func (f facts) decideConfirmed(name string) decision {
	if d := f.confirm(name); d.action != reportAbsent {
		return d
	}
	return f.decideMissing()
}

// decideMissing ends an observation that found no resource. It returns an error under policies without Create, where
// crossplane-runtime would report success or call Update.
func (f facts) decideMissing() decision {
	switch {
	case f.deleting:
		return decision{action: reportAbsent}
	case f.mustExist:
		return decision{action: refuse, err: errMissing}
	case f.specInvalid != nil:
		return decision{action: refuse, err: f.specInvalid}
	}
	return decision{action: reportAbsent}
}

func names(matches []match) []string {
	list := make([]string, len(matches))
	for i, m := range matches {
		list[i] = m.name
	}
	return list
}

// isInvalid reports whether an error is about the form of a name.
func isInvalid(err error) bool {
	var invalid *externalname.InvalidError
	return errors.As(err, &invalid)
}
