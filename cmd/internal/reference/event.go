package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/reason"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
)

const kinds = "api/v1alpha1/crdmigration.go"

// reasonSections are the headings of the groups of package reason, and what is said before
// the table of each.
var reasonSections = map[reason.Subject][2]string{
	reason.Migration: {"Reasons and events", "The condition Ready has one of these reasons, and so do Reconciling and Stalled. An event of the same reason is on the\n" +
		"CRDMigration, in the namespace default, when reason or message change; progress is none, and no event is about a single object."},
	reason.CRD: {"Blockers", "The condition Blocked has the reason of its first blocker; `status.blockers` has them all, each with a remedy for its own\n" +
		"case. The manager checks again by itself, at first after ten seconds and then less often, up to every ten minutes.\n\n" +
		"Some of these reasons are of warnings, which keep no run from starting. Others are of objects that the API server does not\n" +
		"list, so that nothing is known about them: `godwit crd plan` says Unknown. In a CRDMigration, a reason that may end without a\n" +
		"user's action is in the message of ObjectsUnlisted; the others are blockers.\n\n" +
		"What admission refuses, [`godwit crd plan`](commands/crd-plan.md) says before the first write. The manager does not try\n" +
		"writes: an object that is refused is among `status.failures`, with the API server's words, and nothing is trimmed."},
	reason.Leftover: {"References to a version that is not served", "[`godwit crd doctor`](commands/crd-doctor.md) and [`godwit crd check`](commands/crd-check.md) have these reasons."},
	reason.Release:  {"Checks of a release", "[`godwit crd check`](commands/crd-check.md) has these reasons, and those of blockers."},
	reason.Rescue:   {"Rescues", "[`godwit crd rescue`](commands/crd-rescue.md) has these reasons, and those of blockers."},
	reason.Resource: {"Resources", "[`godwit resource run`](commands/resource-run.md), plan and verify have these reasons, and Forbidden, ServerLeaseStale, NoLeaseRenewed, Unauthorized, EtcdFull, EncryptionKeyMissing and those of a list that failed."},
	reason.Revision: {"Upgrades of revisions", "A ControllerRevisionUpgrade has the conditions Ready, Reconciling and Stalled. A condition without one of these reasons has\n" +
		"the [phase](controllerrevisionupgrade.md#status) as its reason. An event tells of a new phase. `godwit revision plan` has the same\n" +
		"reasons; RollbackPending is in `status.failures` of a trigger."},
	reason.Trigger: {"Triggers of revision upgrades", "A ControllerRevisionUpgradeTrigger has the conditions Ready, Reconciling and Stalled, of which at most one is True, as well\n" +
		"as Discovered and VersionsDroppable. The reason is one of these, or one of a revision's where something could not be read."},
	reason.Marker: {"Markers", "[`godwit lint markers`](commands/lint-markers.md) has these reasons."},
	reason.Provider: {"Providers", "[`godwit lint provider`](commands/lint-provider.md) has these reasons, and the report of\n" +
		"`fieldmigration.Existing` has NotMigrated."},
	reason.Name:            {"External names", "Providers that use package externalname have these reasons in errors, and in conditions of managed resources."},
	reason.ManagedResource: {"Renaming managed resources", "[`godwit externalname`](cli.md) has these reasons, and those of external names."},
	reason.NameAudit: {"Audited external names", "[`godwit externalname audit`](commands/externalname-audit.md) and `godwit plan` have these reasons, and of those above NameLost, CreateIncomplete, Duplicate,\n" +
		"JournalUnreadable and NewerFormat."},
	reason.Import: {"Imported managed resources", "[`godwit externalname ready`](commands/externalname-ready.md) has these reasons."},
	reason.ClusterMigration: {"Migrations of clusters", "A ManagedClusterMigration has the conditions Ready, Reconciling and Stalled, of which one is True, and a condition for each phase\n" +
		"that it has reached. An event of the same reason tells of a new phase, of the rollback and of the end."},
	reason.ManagedCluster:   {"Clusters that change hubs", "`status.failures` of a ManagedClusterMigration begins with one of these reasons, and so do the logs of agents."},
	reason.ClusterPreflight: {"A preflight of a migration of managed clusters", "`godwit cluster plan` has these, and those of the migration and of its clusters above."},
	reason.ClusterPlan:      {"Plans of all domains", "[`godwit plan`](commands/plan.md) has these reasons, and those of the plans of the domains."},
	reason.Evidence:         {"Reports of a migration", "[`godwit report`](commands/report.md) has these reasons for files that it did not read."},
	reason.Command:          {"Commands", "Any command may end with one of these reasons."},
}

func eventPage() (string, error) {
	var page strings.Builder
	page.WriteString(generated + "# Events, conditions and reasons\n\n" +
		"`godwit explain REASON` prints the text of this page about a reason.\n\n## Conditions\n\n" +
		"At most one of the first three is True. kstatus, by which Flux and others wait, says Current when Ready is True, Failed\n" +
		"when Stalled is, and InProgress otherwise, also before the first pass and after a change of the spec.\n\n")
	conditions, err := conditionTable()
	if err != nil {
		return "", err
	}
	page.WriteString(conditions.String())
	groups := reason.Groups()
	slices.SortStableFunc(groups, func(a, b reason.Group) int { return first(b) - first(a) })
	for _, g := range groups {
		section, ok := reasonSections[g.Subject]
		if !ok {
			return "", fmt.Errorf("the reasons of subject %s have no section", g.Subject)
		}
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n%s", section[0], section[1], reasonTable(g))
	}
	return page.String(), nil
}

// first has the conditions of a CRDMigration stand beside the table of conditions.
func first(g reason.Group) int {
	if g.Subject == reason.Migration {
		return 1
	}
	return 0
}

func conditionTable() (*table, error) {
	conditions, err := constants(kinds, "Types of conditions.")
	t := newTable("condition", "is")
	for _, c := range conditions {
		t.row(code(c.value), sentence(strings.TrimPrefix(c.doc, "is ")))
	}
	return t, err
}

// reasonTable has a row for each reason of a group, and columns for conditions and events
// where the group has any.
func reasonTable(g reason.Group) *table {
	shows := g.Occurrences != nil
	columns := []string{"reason", "meaning", "what to do"}
	if shows {
		columns = []string{"reason", "condition that is True", "event", "meaning", "what to do"}
	}
	t := newTable(columns...)
	for _, declared := range g.Reasons() {
		r := g.Explain(declared)
		if !shows {
			t.row(anchored(g, r.Reason), r.Meaning, ways(declared.Fix))
			continue
		}
		for i, c := range r.Conditions {
			r.Conditions[i] = code(c)
		}
		t.row(anchored(g, r.Reason), strings.Join(r.Conditions, " or "), strings.Join(r.EventTypes, " or "), r.Meaning, ways(declared.Fix))
	}
	return t
}

// ways has a line of a cell for each way of a fix, with its commands as code.
func ways(f godwit.Fix) string {
	lines := make([]string, len(f))
	for i, way := range f {
		lines[i] = sentence(godwit.Fix{way}.Text(func(s godwit.FixStep) string {
			if len(s.Actions) == 0 {
				return s.Do
			}
			command := remedy.Manager.Commands(s.Actions...)
			if strings.Contains(command, "`") { // settings of a spec, which are code already
				return s.Do + ": " + command
			}
			return s.Do + ": " + code(command)
		}))
	}
	return strings.Join(lines, "<br>or: ")
}

// anchored is a reason with an anchor, for the links of alerts. The same reason may be in several groups.
func anchored(g reason.Group, name string) string {
	return fmt.Sprintf("<a id=%q></a>%s", strings.ToLower(string(g.Subject)+"-"+name), code(name))
}
