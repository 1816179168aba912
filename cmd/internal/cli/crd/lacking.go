package crd

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/cli"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// lacking lists the permissions of a run that the user lacks for the CRD, as far as
// they are known.
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

// unlistable means that a permission is all that keeps the objects from being listed.
func (f finding) unlistable() bool {
	return f.problem == nil && f.facts.Unlisted != nil && f.facts.Unlisted.Reason == crdmigrator.ReasonForbidden
}

// nameLacking says of each finding in one sentence and with one command which
// permissions are missing. They block what was asked for if that was a run. A plan
// says what can be said without them.
func (s *session) nameLacking(ctx context.Context, findings []finding) {
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
		switch s.Purpose.Command {
		case permission.CRDPlan:
			s.planWithout(f, user, missing)
		case permission.CRDRun:
			f.plan.Blockers = oneForbidden(f.plan.Blockers, f.lacks.Blocker())
			f.plan.Unlisted = renamed(f.plan.Unlisted, f.lacks)
		}
	}
}

// onlyLacks means that missing permissions are all that keeps a run from starting.
func (f finding) onlyLacks() bool {
	return f.lacks != nil && (f.plan.State == crdmigrator.StateUnknown ||
		f.plan.State == crdmigrator.Blocked && len(f.plan.Blockers) == 1 && f.plan.Blockers[0].Reason == crdmigrator.ReasonForbidden)
}

// planWithout plans as if nothing were forbidden. The objects stay uncounted: nothing
// is called clean that was not listed.
func (s *session) planWithout(f *finding, user string, missing []permission.Permission) {
	facts := f.facts
	facts.Denied = nil
	if f.unlistable() && !f.plan.Trimmed {
		facts.Unlisted = nil // status.storedVersions says by itself that there is work
	}
	f.plan = crdmigrator.PlanFor(facts, s.policy)
	f.plan.Unlisted = renamed(f.facts.Unlisted, f.lacks)
	if !f.plan.Trimmed {
		run := s.Purpose
		run.Command = permission.CRDRun
		f.plan.Warnings = append(f.plan.Warnings, godwit.Warning{
			Reason: report.ReasonForbidden, Message: "a run needs permissions that " + user + " lacks: " + permission.List(missing), Fix: godwit.Do(run.Remedy(user)),
		})
	}
}

// lackingForCleanup names the permission without which a run that began could clean no
// managedFields. What a plan knows to be missing is named by [session.nameLacking].
func (s *session) lackingForCleanup(ctx context.Context, p passage, blockers []godwit.Blocker) []godwit.Blocker {
	if p.plan.State != crdmigrator.Clean {
		return blockers
	}
	missing := []permission.Permission{{Verbs: []string{"patch"}, Resource: p.plan.Resource.GroupResource()}}
	return oneForbidden(blockers, s.Lacks(s.WhoAmI(ctx), missing).Blocker())
}

// oneForbidden has one blocker in place of those for single permissions.
func oneForbidden(blockers []godwit.Blocker, one godwit.Blocker) []godwit.Blocker {
	forbidden := func(b godwit.Blocker) bool { return b.Reason == crdmigrator.ReasonForbidden }
	at := slices.IndexFunc(blockers, forbidden)
	if at < 0 {
		return blockers
	}
	others := slices.DeleteFunc(slices.Clone(blockers), forbidden)
	return slices.Insert(others, min(at, len(others)), one)
}

// renamed has the words of a problem where a list was forbidden.
func renamed(u *crdmigrator.UnlistedError, lacks *cli.ActionableError) *crdmigrator.UnlistedError {
	if u == nil || u.Reason != crdmigrator.ReasonForbidden {
		return u
	}
	named := *u
	named.Message, named.Fix = lacks.Message, lacks.Fix()
	return &named
}

// sayLacking says in one line which permissions are missing for all CRDs together, and
// by which command an administrator grants them.
func sayLacking(ctx context.Context, a *cli.App, s *session, findings []finding) {
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
		parts = append(parts, "list and migrate the objects of "+report.CRDs(unwritable))
	}
	if unlistable > 0 {
		parts = append(parts, "list the objects of "+report.CRDs(unlistable))
	}
	if unseen {
		parts = append(parts, "list leases.coordination.k8s.io in namespace kube-system, without which the settle time alone decides when a run begins to write")
	}
	if len(parts) == 0 {
		return
	}
	p, user := s.Purpose, s.WhoAmI(ctx)
	if unwritable > 0 {
		p.Command = permission.CRDRun
	}
	a.Console.Printf("? %s lacks permissions: %s; %s\n", user, strings.Join(parts, "; "), p.Remedy(user))
}
