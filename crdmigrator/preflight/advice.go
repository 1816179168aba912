package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quote"
)

const (
	// namedObjects and namedPaths are what fits a line that a person reads.
	namedObjects = 3
	namedPaths   = 5
)

// reportFor decides what a result means for a run of the policy, and what to do about it.
func reportFor(r *result, f crdmigrator.Facts, p crdmigrator.Policy, user string) *crdmigrator.PreflightReport {
	a := advisor{result: r, crd: f.CRD, user: user, accepted: f.DenialsAccepted(p)}
	report := &crdmigrator.PreflightReport{Denials: a.denials(), Summary: r.summary()}
	for _, t := range r.problems() {
		switch t.effect {
		case changes:
			report.Warnings = append(report.Warnings, a.mutation(t))
		case inconclusive:
			report.Warnings = append(report.Warnings, a.unknown(t))
		}
	}
	report.Warnings = append(report.Warnings, a.leftOut(report.Summary)...)
	return report
}

// advisor words what a result means.
type advisor struct {
	*result
	crd  *apiextensionsv1.CustomResourceDefinition
	user string
	// accepted means that denials do not keep a run from starting.
	accepted bool
}

func (a advisor) denials() []godwit.Blocker {
	var list []godwit.Blocker
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
			list = append(list, godwit.Blocker{
				Reason:  crdmigrator.ReasonObjectInvalid,
				Message: fmt.Sprintf("the API server refuses the write %s of %s, on %s: %s", a.write, a.crd.Name, a.where(t), quote.Line(t.words)),
				Remedy: anyOf(fmt.Sprintf("fix the object: kubectl edit %s %s", a.crd.Name, t.attempts[0].arguments()),
					a.leaveBehind()),
			})
		}
	}
	return list
}

func (a advisor) denial(t problem) godwit.Blocker {
	return godwit.Blocker{
		Reason:  crdmigrator.ReasonAdmissionDenied,
		Message: fmt.Sprintf("%s denies the write %s of %s, on %s: %s", t.by, a.write, a.crd.Name, a.where(t), quote.Line(t.words)),
		Remedy:  anyOf(a.statusPatch(t), a.exempt(t.by), a.leaveBehind()),
	}
}

func (a advisor) unavailable(t problem) godwit.Blocker {
	if t.by.Kind == apierror.Conversion {
		return godwit.Blocker{
			Reason:  crdmigrator.ReasonWebhookUnavailable,
			Message: fmt.Sprintf("the conversion webhook of %s fails, without which no object of %s can be read: %s", a.crd.Name, t.by.Name, quote.Line(t.words)),
			Remedy:  fmt.Sprintf("bring it up; where it is: kubectl get crd %s -o jsonpath='{.spec.conversion.webhook.clientConfig}'", a.crd.Name),
		}
	}
	where := "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide"
	if c, ok := a.config(t.by); ok {
		where = fmt.Sprintf("kubectl get %s %s -o yaml", strings.ToLower(c.kind), c.object)
	}
	return godwit.Blocker{
		Reason: crdmigrator.ReasonWebhookUnavailable,
		Message: fmt.Sprintf("%s does not answer, without which the write %s of %s is refused, on %s: %s",
			t.by, a.write, a.crd.Name, a.where(t), quote.Line(t.words)),
		Remedy: anyOf("bring it up; where it is: "+where, a.statusPatch(t), a.leaveBehind()),
	}
}

func (a advisor) mutation(t problem) godwit.Warning {
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
	ways := []string{a.statusPatch(t)}
	for _, origin := range origins {
		ways = append(ways, a.exempt(origin))
	}
	return godwit.Warning{
		Reason: crdmigrator.ReasonAdmissionMutates,
		Message: fmt.Sprintf("objects of %s are changed while they are written as they are: %s on %s; %s",
			a.crd.Name, some(paths, namedPaths, more), a.where(t), by),
		Remedy: anyOf(append(ways, "if any update may do so, go on: the run stores these changes")...),
	}
}

// suspects are who may have changed an object. The server does not tell: what is
// known is whose rules cover the write, and not whom their selectors and
// conditions leave out.
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
	return "by one or more of " + some(names, namedObjects, 0), nil
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

func (a advisor) unknown(t problem) godwit.Warning {
	message := fmt.Sprintf("what admission makes of the write %s of %s is not known on %s: ", a.write, a.crd.Name, a.where(t))
	remedy := "plan again, or try every object: " + a.tryAll()
	if t.by.Name != "" {
		message += t.by.String() + ": "
		remedy = "a run shows it; if the webhook has no side effects, its configuration should say so: sideEffects: None"
	}
	return godwit.Warning{Reason: crdmigrator.ReasonPreflightIncomplete, Message: message + quote.Line(t.words), Remedy: remedy}
}

// leftOut says how far the preflight came, unless what stopped it is said
// already.
func (a advisor) leftOut(s *crdmigrator.PreflightSummary) []godwit.Warning {
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
		why = fmt.Sprintf("one object was tried in %s, and there may be others", count(s.Tried, "namespace", "namespaces"))
	}
	if a.timedOut && a.unlisted == "" {
		why += fmt.Sprintf("; its %v were over", timeLimit)
	}
	return []godwit.Warning{{
		Reason:  crdmigrator.ReasonPreflightIncomplete,
		Message: fmt.Sprintf("the preflight of %s is not complete: %s", a.crd.Name, why),
		Remedy:  "try every object: " + a.tryAll(),
	}}
}

func (a advisor) tryAll() string {
	command := "godwit crd run " + a.crd.Name + " --dry-run=server"
	if w := a.write; w != crdmigrator.WritePatch {
		command += " --write=" + string(w)
	}
	return command
}

// pastIt offers the write of the status, if a dry run of it went through or was
// kept from being tried by a missing right.
func (a advisor) statusPatch(t problem) string {
	if t.status == nil {
		return ""
	}
	command := fmt.Sprintf("godwit crd run %s --write=%s", a.crd.Name, crdmigrator.WriteStatusPatch)
	switch {
	case t.status.effect == passes:
		return "write the status alone, which was tried and passes: " + command
	case apierror.Parse(0, t.status.words).Class == apierror.Forbidden:
		return fmt.Sprintf("with the permission to patch %s, see whether writing the status alone passes: %s --dry-run=server",
			kube.ResourceArgument(kube.ResourceOf(a.crd).GroupResource())+"/status", command)
	}
	return ""
}

// exempt is the narrowest exemption: the user who migrates, and no other.
func (a advisor) exempt(by apierror.Origin) string {
	command := "find its configuration: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o wide"
	within := " of " + by.String()
	if c, ok := a.config(by); ok {
		command = fmt.Sprintf("kubectl edit %s %s", strings.ToLower(c.kind), c.object)
	} else if by.Kind != apierror.Webhook {
		command, within = fmt.Sprintf("kubectl edit %s %s", strings.ToLower(by.Kind), by.Name), ""
	}
	return fmt.Sprintf("for the time of the run, exempt its user by an entry of matchConditions%s, {name: godwit, expression: 'request.userInfo.username != %s'}: %s",
		within, strings.ReplaceAll(strconv.Quote(cmp.Or(a.user, "USER")), "'", "''"), command)
}

// leaveBehind is not offered to a user who has chosen it.
func (a advisor) leaveBehind() string {
	if a.accepted {
		return ""
	}
	command := "godwit crd run " + a.crd.Name + " --accept-denials"
	if w := a.write; w != crdmigrator.WritePatch {
		command += " --write=" + string(w)
	}
	return "migrate what is not refused, without the trim: " + command
}

// where names some of the objects that met a problem.
func (a advisor) where(t problem) string {
	keys := make([]string, len(t.attempts))
	for i, one := range t.attempts {
		keys[i] = one.key()
	}
	return fmt.Sprintf("%s (%d of %s tried)", some(keys, namedObjects, 0), len(t.attempts), count(len(a.attempts), "object", "objects"))
}

// arguments name the object to kubectl.
func (a attempt) arguments() string {
	if a.namespace == "" {
		return a.name
	}
	return a.name + " -n " + a.namespace
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
