package crd

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// lacking lists the known permissions of a run that the user lacks for the CRD.
func (f finding) lacking() []permission.Permission {
	if f.problem != nil {
		return nil
	}
	all := permission.OfGrants(f.facts.Denied, permission.Required)
	if f.unlistable() && !slices.ContainsFunc(all, isList) {
		all = append(all, permission.Permission{Verbs: []string{"list"}, Resource: schema.ParseGroupResource(f.name)})
	}
	return all
}

func isList(p permission.Permission) bool { return slices.Contains(p.Verbs, "list") }

// unlistable reports whether only a missing permission prevents the list of the objects.
func (f finding) unlistable() bool {
	return f.problem == nil && f.facts.Unlisted != nil && render.IsForbidden(f.facts.Unlisted.Reason)
}

// addLacking adds to each finding one error for all missing permissions, with one command.
// Missing permissions block a run. A plan shows what is known without them.
func (s *session) addLacking(ctx context.Context, findings []finding) {
	user := ""
	for i := range findings {
		f := &findings[i]
		missing := f.lacking()
		if len(missing) == 0 {
			continue
		}
		if user == "" {
			user = s.WhoAmI(ctx)
		}
		f.lacks = s.Lacks(user, missing)
		switch s.Purpose.Command.Name {
		case crdpermission.Plan.Name:
			s.planWithout(f, user, missing)
		case crdpermission.Run.Name:
			f.plan.Blockers = oneForbidden(f.plan.Blockers, f.lacks.Finding())
			f.plan.Unlisted = explainUnlisted(f.plan.Unlisted, f.lacks)
		}
	}
}

// onlyLacks reports whether only missing permissions block a run.
func (f finding) onlyLacks() bool {
	return f.lacks != nil && (f.plan.State == decision.StateUnknown ||
		f.plan.State == decision.Blocked && len(f.plan.Blockers) == 1 && render.IsForbidden(f.plan.Blockers[0].Reason))
}

// planWithout plans as if all permissions were granted. The objects stay uncounted, and a CRD
// whose objects were not listed is not Clean.
func (s *session) planWithout(f *finding, user string, missing []permission.Permission) {
	facts := f.facts
	facts.Denied = nil
	if f.unlistable() && !f.plan.Trimmed {
		facts.Unlisted = nil // status.storedVersions alone shows that a run has work
	}
	f.plan = decision.PlanFor(facts, s.policy)
	f.plan.Unlisted = explainUnlisted(f.facts.Unlisted, f.lacks)
	if !f.plan.Trimmed {
		run := s.Purpose
		run.Command = crdpermission.Run
		f.plan.Warnings = append(f.plan.Warnings, godwit.Finding{Severity: godwit.Warns,
			Reason: render.ReasonForbidden, Message: "a run needs permissions that " + user + " lacks: " + permission.List(missing), Fix: godwit.Do(run.Remedy(user)),
		})
	}
}

// lackingForCleanup adds the command that grants the permission to clean managedFields. A run
// finds only after its start that this permission is missing. [session.addLacking] handles the
// permissions that a plan finds missing.
func (s *session) lackingForCleanup(ctx context.Context, p crdRun, blockers []godwit.Finding) []godwit.Finding {
	if p.plan.State != decision.Clean {
		return blockers
	}
	missing := []permission.Permission{{Verbs: []string{"patch"}, Resource: p.plan.Resource.GroupResource()}}
	return oneForbidden(blockers, s.Lacks(s.WhoAmI(ctx), missing).Finding())
}

// oneForbidden replaces the blockers for single permissions by one blocker.
func oneForbidden(blockers []godwit.Finding, one godwit.Finding) []godwit.Finding {
	forbidden := func(b godwit.Finding) bool { return render.IsForbidden(b.Reason) }
	at := slices.IndexFunc(blockers, forbidden)
	if at < 0 {
		return blockers
	}
	others := slices.DeleteFunc(slices.Clone(blockers), forbidden)
	return slices.Insert(others, min(at, len(others)), one)
}

// explainUnlisted replaces the message and the fix of a forbidden list by those of lacks.
func explainUnlisted(u *decision.UnlistedError, lacks *frame.ActionableError) *decision.UnlistedError {
	if u == nil || !render.IsForbidden(u.Reason) {
		return u
	}
	named := *u
	named.Message, named.Fix = lacks.Message, lacks.Fix()
	return &named
}

// printLacking prints one line with the missing permissions for all CRDs and with the command
// that grants them.
func printLacking(ctx context.Context, a *frame.App, s *session, findings []finding) {
	var unlistable, unwritable int64
	unseen := false
	for _, f := range findings {
		switch missing := f.lacking(); {
		case f.problem != nil:
			continue
		case slices.ContainsFunc(missing, func(p permission.Permission) bool { return !isList(p) }):
			unwritable++
		case len(missing) > 0:
			unlistable++
		}
		unseen = unseen || f.plan.ServersUnread != ""
	}
	var parts []string
	if unwritable > 0 {
		parts = append(parts, "list and migrate the objects of "+render.CRDs(unwritable))
	}
	if unlistable > 0 {
		parts = append(parts, "list the objects of "+render.CRDs(unlistable))
	}
	if unseen {
		parts = append(parts, "list leases.coordination.k8s.io in namespace kube-system, without which the settle time alone decides when a run begins to write")
	}
	if len(parts) == 0 {
		return
	}
	p, user := s.Purpose, s.WhoAmI(ctx)
	if unwritable > 0 {
		p.Command = crdpermission.Run
	}
	a.Console.Printf("? %s lacks permissions: %s; %s\n", user, strings.Join(parts, "; "), p.Remedy(user))
}
