package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/placeholder"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

const (
	// namedObjects and namedPaths are what fits a line that a person reads.
	namedObjects = 3
	namedPaths   = 5
)

// reportFor decides what a result means for a run of the policy, and what to do about it.
func reportFor(r *result, f decision.Facts, p decision.Policy, user string) *decision.PreflightReport {
	a := advisor{result: r, crd: f.CRD, user: user, accepted: f.DenialsAccepted(p), acceptedChanges: p.AcceptChanges}
	report := &decision.PreflightReport{Denials: a.denials(), Summary: r.summary()}
	report.CRDDenials, report.Warnings = a.ofCRD()
	for _, t := range r.problems() {
		switch t.effect {
		case changes:
			if f := a.mutation(t); f.Severity == godwit.Warns {
				report.Warnings = append(report.Warnings, f)
			} else {
				report.Changes = append(report.Changes, f)
			}
		case inconclusive:
			report.Warnings = append(report.Warnings, a.unknown(t))
		}
	}
	report.Warnings = append(report.Warnings, a.leftOut(report.Summary)...)
	return report
}

// advisor makes the findings of a result.
type advisor struct {
	*result
	crd  *apiextensionsv1.CustomResourceDefinition
	user string
	// accepted means that denials do not keep a run from starting.
	accepted bool
	// acceptedChanges are the paths that admission may change.
	acceptedChanges []string
}

func (a advisor) denials() []godwit.Finding {
	var list []godwit.Finding
	if o := outcomeOf(0, a.unlisted); a.unlisted != "" && o.effect == unreachable {
		list = append(list, a.unavailable(problem{outcome: o}))
	}
	for _, t := range a.problems() {
		switch t.effect {
		case denies:
			list = append(list, a.denial(t))
		case unreachable:
			list = append(list, a.unavailable(t))
		case invalid:
			list = append(list, godwit.Finding{
				Reason:  decision.ReasonObjectInvalid,
				Message: fmt.Sprintf("the API server refuses the write %s of %s, on %s: %s", a.write, a.crd.Name, a.where(t), quote.Line(t.words)),
				Fix:     decision.EditObject(a.object(t.attempts[0])).Or(a.leaveBehind()),
			})
		}
	}
	return list
}

// ofCRD are the findings of the writes of the CRD. Writes with the same outcome have one.
func (a advisor) ofCRD() (denials, warnings []godwit.Finding) {
	var order []outcome
	writes := map[outcome][]string{}
	for _, w := range a.crdWrites {
		o := w.outcome()
		if o.effect == passes || o.forbidden { // the plan has the missing permission
			continue
		}
		if writes[o] == nil {
			order = append(order, o)
		}
		writes[o] = append(writes[o], w.what)
	}
	for _, o := range order {
		what := fmt.Sprintf("the write of %s itself that a run needs (%s)", a.crd.Name, strings.Join(writes[o], "; "))
		words := quote.Line(o.words)
		switch o.effect {
		case denies:
			denials = append(denials, godwit.Finding{
				Reason: decision.ReasonAdmissionDenied, Message: fmt.Sprintf("%s denies %s: %s", o.by, what, words), Fix: a.exempt(o.by),
			})
		case unreachable:
			denials = append(denials, godwit.Finding{
				Reason: decision.ReasonWebhookUnavailable, Message: fmt.Sprintf("%s does not answer, without which %s is refused: %s", o.by, what, words),
				Fix: decision.BringUp(decision.AllWebhooks),
			})
		case invalid:
			denials = append(denials, godwit.Finding{
				Reason: decision.ReasonObjectInvalid, Message: fmt.Sprintf("the API server refuses %s: %s", what, words),
				Fix: decision.EditObject(kube.CRDObject(a.crd.Name)),
			})
		default:
			warnings = append(warnings, godwit.Finding{
				Severity: godwit.Warns, Reason: decision.ReasonPreflightIncomplete,
				Message: fmt.Sprintf("whether the API server accepts %s is not known: %s", what, words), Fix: decision.PlanAgain(a.crd.Name),
			})
		}
	}
	return denials, warnings
}

func (a advisor) denial(t problem) godwit.Finding {
	return godwit.Finding{
		Reason:  decision.ReasonAdmissionDenied,
		Message: fmt.Sprintf("%s denies the write %s of %s, on %s: %s", t.by, a.write, a.crd.Name, a.where(t), quote.Line(t.words)),
		Fix:     a.statusPatch(t).Or(a.exempt(t.by), a.leaveBehind()),
	}
}

func (a advisor) unavailable(t problem) godwit.Finding {
	if t.by.Kind == apierror.Conversion {
		return godwit.Finding{
			Reason:  decision.ReasonWebhookUnavailable,
			Message: fmt.Sprintf("the conversion webhook of %s fails, without which no object of %s can be read: %s", a.crd.Name, t.by.Name, quote.Line(t.words)),
			Fix:     decision.BringUpConversion(a.crd.Name),
		}
	}
	where := decision.AllWebhooks
	if c, ok := a.config(t.by); ok {
		where = godwit.Show{Object: godwit.Object{Resource: strings.ToLower(c.kind), Name: c.object}, Output: "yaml"}
	}
	return godwit.Finding{
		Reason: decision.ReasonWebhookUnavailable,
		Message: fmt.Sprintf("%s does not answer, without which the write %s of %s is refused, on %s: %s",
			t.by, a.write, a.crd.Name, a.where(t), quote.Line(t.words)),
		Fix: decision.BringUp(where).Or(a.statusPatch(t), a.leaveBehind()),
	}
}

// mutation is the finding of objects that are changed while they are written: a warning if the user accepts each of the paths.
func (a advisor) mutation(t problem) godwit.Finding {
	by, origins := a.suspects()
	var paths []string
	more := 0
	for _, one := range t.attempts {
		more += one.more
		for _, path := range one.changed {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	slices.Sort(paths)
	fix := a.statusPatch(t)
	for _, origin := range origins {
		fix = fix.Or(a.exempt(origin))
	}
	finding := godwit.Finding{
		Reason: decision.ReasonAdmissionMutates,
		Message: fmt.Sprintf("objects of %s are changed while they are written as they are: %s on %s; %s",
			a.crd.Name, joinFirst(paths, namedPaths, more), a.where(t), by),
	}
	consent := slices.Compact(append(slices.Clone(a.acceptedChanges), paths...))
	if more > 0 {
		consent = []string{values.EveryPath}
	}
	if more == 0 && len(values.Uncovered(a.acceptedChanges, paths)) == 0 || values.Covers(a.acceptedChanges, values.EveryPath) {
		finding.Severity = godwit.Warns
	}
	finding.Fix = fix.Or(decision.AcceptMutation(a.crd.Name, a.chosenWrite(), consent...))
	return finding
}

// suspects are the webhooks and policies that may have changed an object, since the API server does
// not name the one that did. Their rules cover the write. Their selectors and conditions, which may
// exclude it, are not evaluated.
func (a advisor) suspects() (text string, by []apierror.Origin) {
	var mutating []admissionConfig
	var names []string
	for _, c := range a.configs {
		if c.mutates() {
			mutating, names = append(mutating, c), append(names, c.String())
		}
	}
	switch {
	case a.configsUnread != "":
		return "the origin is unknown: " + quote.Line(a.configsUnread), nil
	case len(mutating) == 0:
		return "no mutating webhook or policy covers the write: does the conversion webhook convert one object differently each time?", nil
	case len(mutating) == 1:
		return "by " + names[0], []apierror.Origin{mutating[0].origin()}
	}
	return "by one or more of " + joinFirst(names, namedObjects, 0), nil
}

func (c admissionConfig) String() string {
	if c.name == c.object {
		return fmt.Sprintf("%s %s", c.kind, c.name)
	}
	return fmt.Sprintf("webhook %s of %s %s", c.name, c.kind, c.object)
}

func (c admissionConfig) origin() apierror.Origin {
	if strings.HasSuffix(c.kind, "Policy") {
		return apierror.Origin{Kind: c.kind, Name: c.name}
	}
	return apierror.Origin{Kind: apierror.Webhook, Name: c.name}
}

func (a advisor) unknown(t problem) godwit.Finding {
	message := fmt.Sprintf("what admission makes of the write %s of %s is not known on %s: ", a.write, a.crd.Name, a.where(t))
	fix := decision.PlanAgain(a.crd.Name).Or(a.tryAll())
	if t.by.Name != "" {
		message += t.by.String() + ": "
		fix = decision.DeclareNoSideEffects()
	}
	return godwit.Finding{Severity: godwit.Warns, Reason: decision.ReasonPreflightIncomplete, Message: message + quote.Line(t.words), Fix: fix}
}

// leftOut reports how far the preflight came, unless another finding reports what stopped
// it.
func (a advisor) leftOut(s *decision.PreflightSummary) []godwit.Finding {
	stopped := slices.ContainsFunc(a.problems(), func(t problem) bool { return t.effect == unreachable })
	known := outcomeOf(0, a.unlisted).effect == unreachable
	var why string
	switch {
	case a.unlisted != "" && known, stopped, a.unlisted == "" && s.NamespacesLeftOut == 0 && s.AllSeen:
		return nil
	case a.unlisted != "":
		why = "no objects could be listed: " + quote.Line(a.unlisted)
	case s.Tried == 0 && s.NamespacesLeftOut == 0:
		why = "the first objects are done by an earlier run, and none that is still to be written was found"
	case s.NamespacesLeftOut > 0 && s.AllSeen:
		why = fmt.Sprintf("one object was tried in %d of %d namespaces", s.Tried, a.namespaces)
	case s.NamespacesLeftOut > 0:
		why = fmt.Sprintf("one object was tried in %d of at least %d namespaces", s.Tried, a.namespaces)
	default:
		why = fmt.Sprintf("one object was tried in %s, and there may be others", quote.Count(int64(s.Tried), "namespace", "namespaces"))
	}
	if a.timedOut && a.unlisted == "" {
		why += fmt.Sprintf("; its %v were over", timeLimit)
	}
	return []godwit.Finding{{
		Severity: godwit.Warns,
		Reason:   decision.ReasonPreflightIncomplete,
		Message:  fmt.Sprintf("the preflight of %s is not complete: %s", a.crd.Name, why),
		Fix:      a.tryAll(),
	}}
}

func (a advisor) tryAll() godwit.Fix {
	return decision.TryEveryObject(a.crd.Name, a.chosenWrite())
}

// chosenWrite is empty for the default.
func (a advisor) chosenWrite() string {
	if a.write == decision.WritePatch {
		return ""
	}
	return string(a.write)
}

// statusPatch offers the write of the status, if a dry run of it went through, or was not
// tried because a permission is missing.
func (a advisor) statusPatch(t problem) godwit.Fix {
	if t.status == nil {
		return nil
	}
	switch {
	case t.status.effect == passes:
		return decision.WriteStatus(a.crd.Name)
	case t.status.forbidden:
		return decision.TryStatus(a.crd.Name, kube.ResourceArgument(kube.ResourceOf(a.crd).GroupResource())+"/status")
	}
	return nil
}

// exempt is the narrowest exemption: the user who migrates, and no other.
func (a advisor) exempt(by apierror.Origin) godwit.Fix {
	user := cmp.Or(a.user, placeholder.User)
	if c, known := a.config(by); known {
		return decision.Exempt(user, by.String(), godwit.Edit{Object: godwit.Object{Resource: strings.ToLower(c.kind), Name: c.object}})
	}
	return decision.ExemptFrom(user, by)
}

// leaveBehind is the fix that migrates the other objects; none for a user who has chosen it already.
func (a advisor) leaveBehind() godwit.Fix {
	if a.accepted {
		return nil
	}
	return decision.LeaveBehind(a.crd.Name, a.chosenWrite())
}

func (a advisor) object(o attempt) godwit.Object {
	return godwit.Object{Resource: a.crd.Name, Namespace: o.namespace, Name: o.name}
}

// where names some of the objects that met a problem.
func (a advisor) where(t problem) string {
	keys := make([]string, len(t.attempts))
	for i, one := range t.attempts {
		keys[i] = one.key()
	}
	return fmt.Sprintf("%s (%d of %s tried)", joinFirst(keys, namedObjects, 0), len(t.attempts), quote.Count(int64(len(a.attempts)), "object", "objects"))
}

// joinFirst joins at most the given number of entries of a list, and counts the others. more
// is the number of entries that the list lacks.
func joinFirst(list []string, most, more int) string {
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
