package crossplane

import (
	"errors"

	"github.com/godwit-dev/godwit/externalname"
)

// facts are what an observation knows: first what the object says, then the answers of the
// external system as they come in. Names are canonical.
type facts struct {
	// name is the name that the annotation contains, empty without one.
	name string
	// invalid is why the annotation can't be read.
	invalid error
	// hint is true for a legacy name that does not identify the resource by itself.
	hint bool
	// bound is the name under which the external resource was last seen.
	bound string
	// renaming is the name that an update was about to give.
	renaming string
	// operation creates the resource.
	operation string
	// creating is true if a creation was begun whose outcome is not recorded.
	creating bool
	// fresh is true if a request of that creation may still be under way.
	fresh bool

	deleting bool
	// mustExist is true if the policies allow neither a creation nor observing alone.
	mustExist bool
	// specInvalid is why the key that the spec asks for has no name.
	specInvalid error
	// rules are those of the kind.
	rules rules

	// gets are the answers of Get by name.
	gets map[string]presence
	// found are the matches of Find; nil as long as it was not asked.
	found *[]match
	// job is the state of the operation, and jobName the name that it has made.
	job     job
	jobName string
	// jobSearched is true if the external system knows no operation of this object.
	jobSearched bool
}

// rules are what the author of a kind has declared.
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

// action is what an observation does next: ask a question, or end.
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

// decide is the contract of external names. It is pure: the caller answers a question by
// adding to the facts, and asks again.
func decide(f facts) decision {
	switch {
	case f.invalid != nil:
		return decision{action: refuse, err: f.invalid}
	case f.operation != "":
		return f.byOperation()
	case f.name != "":
		return f.byName()
	}
	return f.unnamed()
}

func (f facts) byOperation() decision {
	switch f.job {
	case jobRunning:
		return decision{action: reportInProgress}
	case jobEnded:
		return decision{action: bindJob, name: f.jobName}
	case jobFailed:
		f.operation, f.creating = "", false
		return decide(f)
	case jobForgotten:
		return f.recovered()
	}
	return decision{action: askOperation}
}

// byName looks the resource up by its name and by nothing else.
func (f facts) byName() decision {
	switch f.gets[f.name] {
	case present:
		return decision{action: reportPresent, name: f.name}
	case absent:
		return f.nameNotFound()
	}
	return decision{action: askGet, name: f.name}
}

// nameNotFound is drift, unless the resource exists under another name that this object knows.
func (f facts) nameNotFound() decision {
	if f.renaming != "" && f.renaming != f.name {
		if d := f.confirm(f.renaming); d.action != reportAbsent {
			return d
		}
	}
	if d, changed := f.nameChanged(); changed {
		return d
	}
	if f.creating {
		return f.recovered()
	}
	if f.bound == "" && f.rules.importMustExist && !f.deleting {
		return decision{action: refuse, err: &NeverFoundError{Name: f.name}}
	}
	return f.missing()
}

// nameChanged asks for the resource under the name that it was last seen under.
func (f facts) nameChanged() (decision, bool) {
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

func (f facts) unnamed() decision {
	if d, changed := f.nameChanged(); changed {
		return d
	}
	if f.creating {
		return f.recovered()
	}
	if !f.hint && !f.rules.findUnnamed {
		return f.missing()
	}
	if f.found == nil {
		return decision{action: askFind}
	}
	switch matches := *f.found; len(matches) {
	case 0:
		return f.missing()
	case 1:
		return f.confirmed(matches[0].name)
	}
	return decision{action: refuse, err: &MultipleMatchesError{Names: names(*f.found)}}
}

// recovered decides after a creation whose outcome is not recorded. It adopts only what is
// proven to come from that creation, and creates again only if nothing does.
func (f facts) recovered() decision {
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
		return f.confirmed(ours[0].name)
	case len(ours) > 1:
		return decision{action: refuse, err: &MultipleMatchesError{Names: names(ours)}}
	case f.fresh:
		return decision{action: refuse, err: errUnknownOutcome}
	case len(*f.found) == 0, f.deleting && f.rules.canProve:
		return f.missing()
	}
	return decision{action: refuse, err: &AdoptionRefusedError{Names: names(*f.found)}}
}

// confirm asks whether a name exists; confirmed decides on the answer.
func (f facts) confirm(name string) decision {
	switch f.gets[name] {
	case present:
		return decision{action: reportPresent, name: name}
	case absent:
		return decision{action: reportAbsent}
	}
	return decision{action: askGet, name: name}
}

func (f facts) confirmed(name string) decision {
	if d := f.confirm(name); d.action != reportAbsent {
		return d
	}
	return f.missing()
}

// missing is the end of an observation that found nothing. crossplane-runtime would report
// success, or call Update, under policies that don't allow Create.
func (f facts) missing() decision {
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

// isInvalid reports whether an error is about the writing of a name.
func isInvalid(err error) bool {
	var invalid *externalname.InvalidError
	return errors.As(err, &invalid)
}
