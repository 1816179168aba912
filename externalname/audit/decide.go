package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/externalname/internal/evidence"
	"github.com/godwit-dev/godwit/internal/quote"
)

// DefaultPendingFor is how long a creation may be pending: a request to an external system ends within minutes.
const DefaultPendingFor = 10 * time.Minute

// pausedFor is how long a pause by a user is not reported.
const pausedFor = 24 * time.Hour

// Options tune [Decide].
type Options struct {
	// Now is the time of the API server.
	Now time.Time
	// PendingFor is how long a creation may be pending; 0 means DefaultPendingFor.
	PendingFor time.Duration
}

// Finding is a problem of one managed resource. Its severity is Blocks if the user must act, and Warns if the user should compare.
type Finding struct {
	Kind            fleet.Kind
	Namespace, Name string
	ExternalName    string
	// With are the other managed resources of the finding.
	With []string
	godwit.Finding
}

// Decide finds the problems of managed resources. It is pure. Findings are sorted by resource, namespace and name.
func Decide(facts []Fact, o Options) []Finding {
	if o.PendingFor == 0 {
		o.PendingFor = DefaultPendingFor
	}
	facts = slices.SortedFunc(slices.Values(facts), compareFacts)
	shared := shares(facts)
	var found []Finding
	for i, f := range facts {
		for _, decide := range []func(Fact, Options) *godwit.Finding{unreadable, interrupted, halfHandedOver, returned, lost, pending, createdTwice, contested} {
			if one := decide(f, o); one != nil {
				found = append(found, f.finding(*one, nil))
			}
		}
		found = append(found, shared[i]...)
		if one := paused(f, o); one != nil && len(shared[i]) == 0 {
			found = append(found, f.finding(*one, nil))
		}
	}
	return found
}

func (f Fact) finding(one godwit.Finding, with []string) Finding {
	return Finding{Kind: f.Kind, Namespace: f.Namespace, Name: f.Name, ExternalName: f.ExternalName, With: with, Finding: one}
}

// unreadable reports annotations that can't be read.
func unreadable(f Fact, _ Options) *godwit.Finding { return f.Problem }

// interrupted reports a renaming that has not ended. Its managed resource may be paused.
func interrupted(f Fact, _ Options) *godwit.Finding {
	if f.Renaming == "" {
		return nil
	}
	return &godwit.Finding{Severity: godwit.Warns, Reason: ReasonRenamingInterrupted, Message: fmt.Sprintf("a renaming to %q has not ended", clip(f.Renaming)), Fix: endRenaming(f.object())}
}

// halfHandedOver reports a handover that has not ended.
func halfHandedOver(f Fact, _ Options) *godwit.Finding {
	if f.Handover == nil || f.Handover.Ended {
		return nil
	}
	return &godwit.Finding{
		Severity: godwit.Warns, Reason: ReasonHandoverInterrupted, Fix: endHandover(godwit.Object(f.Handover.To)),
		Message: fmt.Sprintf("the handover of %s to %s has not ended", f.Handover.From, f.Handover.To),
	}
}

// returned reports whether the managed resource is the replacement of a handover that was undone or rolled back.
func (f Fact) returned() bool { return f.Handover != nil && f.Handover.Returned }

// returned reports a replacement that is left over.
func returned(f Fact, _ Options) *godwit.Finding {
	if !f.returned() || f.Deleting && !f.Paused {
		return nil
	}
	return &godwit.Finding{
		Severity: godwit.Warns, Reason: ReasonHandoverReturned, Fix: endReturned(f.object()),
		Message: "a handover to it was undone or rolled back: it has no external resource, and may only observe",
	}
}

// incomplete reports whether a creation is pending for longer than any creation takes.
func (f Fact) incomplete(o Options) bool {
	return f.creation.Incomplete && o.Now.Sub(f.creation.Pending) > o.PendingFor
}

// lost reports an external resource without a name.
func lost(f Fact, o Options) *godwit.Finding {
	if !f.creation.NameLost(f.ExternalName) || f.incomplete(o) || f.returned() {
		return nil
	}
	name := f.creation.Bound
	message := fmt.Sprintf("an external resource was created at %s, and the managed resource has no external name", stamp(f.creation.Succeeded))
	if name != "" {
		message = fmt.Sprintf("the external resource %q was observed, and the managed resource has no external name any more", clip(name))
	} else if id := f.subject.IDs["id"]; id != "" {
		message += fmt.Sprintf(". status.atProvider.id is %q", clip(id))
	}
	return &godwit.Finding{Reason: fleet.ReasonNameLost, Message: message, Fix: evidence.WriteName(f.object(), name, f.Paused)}
}

// pending reports a creation that hangs.
func pending(f Fact, o Options) *godwit.Finding {
	if !f.incomplete(o) {
		return nil
	}
	return &godwit.Finding{Reason: fleet.ReasonCreateIncomplete, Fix: evidence.EndCreation(f.object()),
		Message: fmt.Sprintf("a creation was begun at %s, and its outcome is not recorded", stamp(f.creation.Pending))}
}

// recreated reports whether a source owns the name of an external resource that was created several times.
func (f Fact) recreated() bool { return f.Owner.Source && f.Creations.Count > 1 }

// createdTwice reports several creations. An external resource that was deleted is rightly created again, so that this is not certain.
func createdTwice(f Fact, _ Options) *godwit.Finding {
	var message string
	switch {
	case f.creation.Running, f.recreated(): // an asynchronous creation that fails is retried
		return nil
	case f.Creations.Count > 1:
		message = fmt.Sprintf("the provider has created an external resource %d times since %s", f.Creations.Count, stamp(f.Creations.First))
	case !f.NameWritten.IsZero() && f.creation.Succeeded.After(f.NameWritten):
		message = fmt.Sprintf("%s wrote the external name at %s, and the provider created an external resource at %s: it had found none of that name", f.NameWriter, stamp(f.NameWritten), stamp(f.creation.Succeeded))
	default:
		return nil
	}
	return &godwit.Finding{Severity: godwit.Warns, Reason: ReasonCreatedTwice, Message: message, Fix: compareCreations(f.object())}
}

// contested reports a name that the provider and a source write in turns. Only a manifest proves it: an external resource that was
// deleted is rightly created again, and two clients may write other fields in turns.
func contested(f Fact, _ Options) *godwit.Finding {
	var message string
	severity := godwit.Warns
	switch {
	case f.ExternalName != "" && f.AppliedName != "" && f.AppliedName != f.ExternalName:
		severity = godwit.Blocks
		message = fmt.Sprintf("the manifest that was applied has the external name %q, and the managed resource %q: the next apply restores that of the manifest", clip(f.AppliedName), clip(f.ExternalName))
	case f.InTurns:
		message = f.Owner.Manager + " and the client that has written the external name write the managed resource in turns"
	case f.recreated():
		message = fmt.Sprintf("%s applies the external name, and the provider has created an external resource %d times since %s", f.Owner.Manager, f.Creations.Count, stamp(f.Creations.First))
	default:
		return nil
	}
	fix := changeSource(f.object())
	if f.Paused {
		fix = godwit.Fix{fix[0][1:]}
	}
	return &godwit.Finding{Severity: severity, Reason: ReasonNameContested, Message: message, Fix: fix}
}

// paused reports a pause that seems to be over. It is not over while the name is not right.
func paused(f Fact, o Options) *godwit.Finding {
	if !f.Paused || f.Renaming != "" || f.Handover != nil && (f.Handover.Returned || !f.Handover.Ended) || f.Problem != nil || f.creation.Incomplete || f.creation.NameLost(f.ExternalName) {
		return nil
	}
	var message string
	fix := endPause(f.object())
	switch {
	case f.Deleting:
		fix = keepExternal(f.object())
		message = "the managed resource is being deleted, and the provider does not delete its external resource while it is paused"
	case f.byGodwit():
		message = "Godwit has paused the managed resource, and no renaming is in progress"
	case f.PausedBy != "" && o.Now.Sub(f.PausedSince) > pausedFor:
		message = fmt.Sprintf("%s has paused the managed resource, and has not changed it since %s", f.PausedBy, stamp(f.PausedSince))
	default:
		return nil
	}
	return &godwit.Finding{Severity: godwit.Warns, Reason: ReasonPausedLeftover, Message: message, Fix: fix}
}

// shares returns the findings of managed resources that have one external resource, by their index. One that only observes writes
// nothing, and may share.
func shares(facts []Fact) map[int][]Finding {
	subjects := make([]evidence.Subject, len(facts))
	for i, f := range facts {
		if !f.Observes {
			subjects[i] = f.subject
		}
	}
	found := map[int][]Finding{}
	for _, g := range evidence.Share(subjects) {
		reason, severity, message := sharing(facts, g)
		for _, i := range g.Members {
			if len(found[i]) > 0 { // it is in a group that is certain
				continue
			}
			with := others(facts, g.Members, i)
			found[i] = []Finding{facts[i].finding(godwit.Finding{
				Severity: severity, Reason: reason, Message: fmt.Sprintf(message, list(append([]string{facts[i].text()}, with...))), Fix: evidence.StopSharing(facts[i].object()),
			}, with)}
		}
	}
	return found
}

// sharing returns what a group is: certain, or to be compared.
func sharing(facts []Fact, g evidence.Group) (reason *godwit.Reason, severity godwit.Severity, message string) {
	writing := slices.DeleteFunc(slices.Clone(g.Members), func(i int) bool { return facts[i].Paused })
	switch {
	case g.Sameness != evidence.Certain:
		return ReasonMaybeShared, godwit.Warns, "%s may have one external resource: they have the same external name or identifier, and differ in other fields"
	case len(writing) < 2:
		return ReasonMaybeShared, godwit.Warns, "%s have one external resource, and all but one are paused: with the end of a pause, several write it"
	}
	return fleet.ReasonDuplicate, godwit.Blocks, "%s have one external resource: each of them writes it, and the deletion of one deletes it for all"
}

func others(facts []Fact, members []int, i int) []string {
	var all []string
	for _, m := range members {
		if m != i {
			all = append(all, facts[m].text())
		}
	}
	return all
}

// list names at most three managed resources.
func list(objects []string) string {
	const most = 3
	text := strings.Join(objects[:min(len(objects), most)], ", ")
	if more := len(objects) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// nameBytes bounds a name in a message.
const nameBytes = 64

func clip(name string) string { return quote.Clip(name, nameBytes) }

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
