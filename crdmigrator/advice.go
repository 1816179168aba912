package crdmigrator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quote"
)

const (
	// namedObjects and namedPaths are what fits a line that a person reads.
	namedObjects = 3
	namedPaths   = 5
)

// checkAdmission: what the API server refused of one object it will refuse of
// that object in a run.
func checkAdmission(f Facts, p Policy) []godwit.Blocker {
	if denialsAccepted(f, p) {
		return nil
	}
	return refusals(f, p)
}

// denialsAccepted: by the policy, or by the run that left the checkpoint. It may
// have met the denials on its way; whoever begins it again must not find it
// refused half-way, for what had not kept it from beginning.
func denialsAccepted(f Facts, p Policy) bool { return p.AcceptDenials || f.Checkpoint.holds(f.CRD, p) }

// warnings are what a person should know and what does not keep a run from
// starting.
func warnings(f Facts, p Policy) []godwit.Warning {
	var list []godwit.Warning
	if trimmedInVain(f.CRD) >= 0 {
		list = append(list, godwit.Warning{
			Reason:  ReasonStoredVersionsDoubtful,
			Message: fmt.Sprintf("a StorageVersionMigration of %s failed, and status.storedVersions was trimmed all the same: objects may be stored at any version", f.CRD.Name),
			Remedy:  "migrate them, which also removes that doubt: godwit crd run " + f.CRD.Name,
		})
	}
	if g := f.CleanupDenied; g != nil {
		list = append(list, godwit.Warning{
			Reason:  ReasonCleanupForbidden,
			Message: fmt.Sprintf("%s may not %s, without which stale managedFields stay", orElse(f.User, "the current user"), g),
			Remedy:  g.Command(f.User),
		})
	}
	if f.Admission == nil {
		return list
	}
	if denialsAccepted(f, p) {
		for _, b := range refusals(f, p) {
			list = append(list, godwit.Warning(b))
		}
	}
	for _, t := range f.Admission.troubles() {
		switch t.effect {
		case changes:
			list = append(list, mutation(f, t))
		case untold:
			list = append(list, unheard(f, t))
		}
	}
	return append(list, leftOut(f)...)
}

func refusals(f Facts, p Policy) []godwit.Blocker {
	a := f.Admission
	if a == nil {
		return nil
	}
	var list []godwit.Blocker
	if r := judgeRefusal(0, a.Unlisted); a.Unlisted != "" && r.effect == unreachable {
		list = append(list, unavailable(f, p, trouble{ruling: r}))
	}
	for _, t := range a.troubles() {
		switch t.effect {
		case denies:
			list = append(list, denial(f, p, t))
		case unreachable:
			list = append(list, unavailable(f, p, t))
		case invalid:
			list = append(list, godwit.Blocker{
				Reason:  ReasonObjectInvalid,
				Message: fmt.Sprintf("the API server refuses the write %s of %s, on %s: %s", a.Write, f.CRD.Name, a.where(t), quote.Line(t.words)),
				Remedy: anyOf(fmt.Sprintf("mend the object: kubectl edit %s %s", f.CRD.Name, t.trials[0].arguments()),
					leaveBehind(f, p)),
			})
		}
	}
	return list
}

func denial(f Facts, p Policy, t trouble) godwit.Blocker {
	return godwit.Blocker{
		Reason:  ReasonAdmissionDenied,
		Message: fmt.Sprintf("%s denies the write %s of %s, on %s: %s", t.by, f.Admission.Write, f.CRD.Name, f.Admission.where(t), quote.Line(t.words)),
		Remedy:  anyOf(pastIt(f, t), exempt(f, t.by), leaveBehind(f, p)),
	}
}

func unavailable(f Facts, p Policy, t trouble) godwit.Blocker {
	if t.by.Kind == apierror.Conversion {
		return godwit.Blocker{
			Reason:  ReasonWebhookUnavailable,
			Message: fmt.Sprintf("the conversion webhook of %s fails, without which no object of %s can be read: %s", f.CRD.Name, t.by.Name, quote.Line(t.words)),
			Remedy:  fmt.Sprintf("bring it up; where it is: kubectl get crd %s -o jsonpath='{.spec.conversion.webhook.clientConfig}'", f.CRD.Name),
		}
	}
	where := "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide"
	if h, ok := f.Admission.hook(t.by); ok {
		where = fmt.Sprintf("kubectl get %s %s -o yaml", strings.ToLower(h.Kind), h.Configuration)
	}
	return godwit.Blocker{
		Reason: ReasonWebhookUnavailable,
		Message: fmt.Sprintf("%s does not answer, without which the write %s of %s is refused, on %s: %s",
			t.by, f.Admission.Write, f.CRD.Name, f.Admission.where(t), quote.Line(t.words)),
		Remedy: anyOf("bring it up; where it is: "+where, pastIt(f, t), leaveBehind(f, p)),
	}
}

func mutation(f Facts, t trouble) godwit.Warning {
	by, culprits := f.Admission.suspects()
	var paths []string
	more := 0
	for _, trial := range t.trials {
		more += trial.More
		for _, path := range trial.Changed {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	slices.Sort(paths)
	ways := []string{pastIt(f, t)}
	for _, h := range culprits {
		ways = append(ways, exempt(f, h))
	}
	return godwit.Warning{
		Reason: ReasonAdmissionMutates,
		Message: fmt.Sprintf("objects of %s are changed while they are written as they are: %s on %s; %s",
			f.CRD.Name, some(paths, namedPaths, more), f.Admission.where(t), by),
		Remedy: anyOf(append(ways, "if any update may do so, go on: the run stores these changes")...),
	}
}

// suspects are who may have changed an object. The server does not tell: what is
// known is whose rules cover the write, and not whom their selectors and
// conditions leave out.
func (a *Admission) suspects() (text string, by []apierror.Origin) {
	var hooks []Hook
	var names []string
	for _, h := range a.Hooks {
		if h.mutates() {
			hooks, names = append(hooks, h), append(names, h.String())
		}
	}
	switch {
	case a.HooksUnread != "":
		return "who does it can't be told: " + quote.Line(a.HooksUnread), nil
	case len(hooks) == 0:
		return "no mutating webhook or policy covers the write: does the conversion webhook convert one object differently each time?", nil
	case len(hooks) == 1:
		return "by " + names[0], []apierror.Origin{hooks[0].origin()}
	}
	return "by one or more of " + some(names, namedObjects, 0), nil
}

func (h Hook) String() string {
	if h.Name == h.Configuration {
		return fmt.Sprintf("%s %s", h.Kind, h.Name)
	}
	return fmt.Sprintf("webhook %s of %s %s", h.Name, h.Kind, h.Configuration)
}

func (h Hook) origin() apierror.Origin {
	if strings.HasSuffix(h.Kind, "Policy") {
		return apierror.Origin{Kind: h.Kind, Name: h.Name}
	}
	return apierror.Origin{Kind: apierror.Webhook, Name: h.Name}
}

func unheard(f Facts, t trouble) godwit.Warning {
	message := fmt.Sprintf("what admission makes of the write %s of %s is not known on %s: ", f.Admission.Write, f.CRD.Name, f.Admission.where(t))
	remedy := "plan again, or try every object: " + tryAll(f)
	if t.by.Name != "" {
		message += t.by.String() + ": "
		remedy = "a run shows it; if the webhook has no side effects, its configuration should say so: sideEffects: None"
	}
	return godwit.Warning{Reason: ReasonRehearsalIncomplete, Message: message + quote.Line(t.words), Remedy: remedy}
}

// leftOut says how far the rehearsal came, unless what stopped it is said
// already.
func leftOut(f Facts) []godwit.Warning {
	a := f.Admission
	r := a.rehearsed()
	stopped := slices.ContainsFunc(a.troubles(), func(t trouble) bool { return t.effect == unreachable })
	known := judgeRefusal(0, a.Unlisted).effect == unreachable
	var why string
	switch {
	case a.Unlisted != "" && known, stopped, a.Unlisted == "" && r.NamespacesLeftOut == 0 && r.AllSeen:
		return nil
	case a.Unlisted != "":
		why = "no objects could be listed: " + quote.Line(a.Unlisted)
	case r.Tried == 0 && r.NamespacesLeftOut == 0:
		why = "the first objects are done by an earlier run, and none that is still to be written was found"
	case r.NamespacesLeftOut > 0 && r.AllSeen:
		why = fmt.Sprintf("one object was tried in %d of %d namespaces", r.Tried, a.Namespaces)
	case r.NamespacesLeftOut > 0:
		why = fmt.Sprintf("one object was tried in %d of at least %d namespaces", r.Tried, a.Namespaces)
	default:
		why = fmt.Sprintf("one object was tried in %s, and there may be others", count(r.Tried, "namespace", "namespaces"))
	}
	if a.TimedOut && a.Unlisted == "" {
		why += fmt.Sprintf("; its %v were over", rehearsalLimit)
	}
	return []godwit.Warning{{
		Reason:  ReasonRehearsalIncomplete,
		Message: fmt.Sprintf("the rehearsal of %s is not complete: %s", f.CRD.Name, why),
		Remedy:  "try every object: " + tryAll(f),
	}}
}

// BringBack is the command that adds versions to spec.versions which objects are
// stored at, so that the API server can read these objects again. No version is
// served, and each keeps every field. A webhook that converts must know the
// versions, too.
func BringBack(crd string, versions ...string) string {
	steps := make([]string, len(versions))
	for i, v := range versions {
		steps[i] = fmt.Sprintf(`{"op": "add", "path": "/spec/versions/-", "value": {"name": %q, "served": false, "storage": false, `+
			`"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}`, v)
	}
	return fmt.Sprintf("kubectl patch crd %s --type=json -p '[%s]'", crd, strings.Join(steps, ", "))
}

// afterBlockers puts what has to be done first in front of the remedies that a
// blocker stands in the way of: a run that tries every object is refused as any
// other. What admission refuses is not asked for then.
func afterBlockers(list []godwit.Warning, blockers []godwit.Blocker) []godwit.Warning {
	var first []string
	for _, b := range blockers {
		switch b.Reason {
		case ReasonAdmissionDenied, ReasonWebhookUnavailable, ReasonObjectInvalid, ReasonServerSilent:
		default:
			first = append(first, b.Reason)
		}
	}
	if len(first) == 0 {
		return list
	}
	slices.Sort(first)
	list = slices.Clone(list)
	for i := range list {
		if list[i].Reason == ReasonRehearsalIncomplete {
			list[i].Remedy = fmt.Sprintf("first do what %s asks for, then %s", strings.Join(slices.Compact(first), " and "), list[i].Remedy)
		}
	}
	return list
}

func tryAll(f Facts) string {
	command := "godwit crd run " + f.CRD.Name + " --dry-run=server"
	if w := f.Admission.Write; w != WritePatch {
		command += " --write=" + string(w)
	}
	return command
}

// pastIt offers the write of the status, if a dry run of it went through or was
// kept from being tried by a missing right.
func pastIt(f Facts, t trouble) string {
	if t.status == nil {
		return ""
	}
	command := fmt.Sprintf("godwit crd run %s --write=%s", f.CRD.Name, WriteStatusPatch)
	switch {
	case t.status.effect == passes:
		return "write the status alone, which was tried and passes: " + command
	case apierror.Parse(0, t.status.words).Class == apierror.Forbidden:
		return fmt.Sprintf("with the right to patch %s, see whether writing the status alone passes: %s --dry-run=server",
			kube.ResourceArgument(kube.ResourceOf(f.CRD).GroupResource())+"/status", command)
	}
	return ""
}

// exempt is the narrowest exemption there is: the one who migrates, and nobody
// else.
func exempt(f Facts, by apierror.Origin) string {
	command := "find its configuration: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide"
	within := " of " + by.String()
	if h, ok := f.Admission.hook(by); ok {
		command = fmt.Sprintf("kubectl edit %s %s", strings.ToLower(h.Kind), h.Configuration)
	} else if by.Kind != apierror.Webhook {
		command, within = fmt.Sprintf("kubectl edit %s %s", strings.ToLower(by.Kind), by.Name), ""
	}
	return fmt.Sprintf("for the time of the run, exempt its user by an entry of matchConditions%s, {name: godwit, expression: 'request.userInfo.username != %s'}: %s",
		within, strings.ReplaceAll(strconv.Quote(orElse(f.User, "USER")), "'", "''"), command)
}

// leaveBehind is what is not offered to somebody who has chosen it.
func leaveBehind(f Facts, p Policy) string {
	if denialsAccepted(f, p) {
		return ""
	}
	command := "godwit crd run " + f.CRD.Name + " --accept-denials"
	if w := f.Admission.Write; w != WritePatch {
		command += " --write=" + string(w)
	}
	return "migrate what is not refused, without the trim: " + command
}

// where names some of the objects that met a trouble.
func (a *Admission) where(t trouble) string {
	keys := make([]string, len(t.trials))
	for i, trial := range t.trials {
		keys[i] = trial.key()
	}
	return fmt.Sprintf("%s (%d of %s tried)", some(keys, namedObjects, 0), len(t.trials), count(len(a.Trials), "object", "objects"))
}

// arguments name the object to kubectl.
func (t Trial) arguments() string {
	if t.Namespace == "" {
		return t.Name
	}
	return t.Name + " -n " + t.Namespace
}

// some joins the first of a list and counts the others, and those that are not
// even in the list.
func some(list []string, most, more int) string {
	if len(list) > most {
		more += len(list) - most
		list = list[:most]
	}
	text := strings.Join(list, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// anyOf joins alternatives, of which some may be none.
func anyOf(ways ...string) string {
	return strings.Join(slices.DeleteFunc(ways, func(s string) bool { return s == "" }), "; or ")
}
