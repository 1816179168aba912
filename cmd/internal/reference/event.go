package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/controller/crdmigration"
	"github.com/godwit-dev/godwit/cmd/internal/remedy"
	"github.com/godwit-dev/godwit/crdmigrator"
)

const (
	kinds = "api/v1alpha1/crdmigration.go"
	plans = "crdmigrator/plan.go"
	lists = "crdmigrator/unlisted.go"

	revisionPlans = "revision/plan.go"
	triggerCounts = "cmd/internal/controller/revisionupgrade/count.go"
)

// remedies are what to do about a blocker, in short: each blocker in a status comes
// with the command for its own case.
var remedies = map[string]string{
	crdmigrator.ReasonNotEstablished:           "See why in the definition's conditions.",
	crdmigrator.ReasonTerminating:              "Nothing is left to migrate. If the deletion hangs, see what holds it.",
	crdmigrator.ReasonNoStorageVersion:         "Mark one version of the definition.",
	crdmigrator.ReasonStorageVersionNotServed:  "Serve it for as long as the migration takes.",
	crdmigrator.ReasonStatusSubresourceMissing: "Choose a write to the object itself, or add the subresource to the version.",
	crdmigrator.ReasonStoredVersionNotInSpec:   "Bring the version back, unserved; or prove from etcd that no object is stored at it.",
	crdmigrator.ReasonForbidden:                "Grant the right. The remedy is the command that does, and no more than that.",
	crdmigrator.ReasonWebhookUnavailable:       "Bring the conversion webhook up. If the message says that status.storedVersions is wrong, put the version back, as the remedy does.",
	crdmigrator.ReasonConversionFailed:         "Fix the conversion webhook, or its configuration. If the message says that status.storedVersions is wrong, put the version back, as the remedy does.",
	crdmigrator.ReasonUnreadableObjects:        "Add the version that spec.versions lacks, with `served: false`, and to status.storedVersions, as the remedy does; or restore the object from a backup.",
	crdmigrator.ReasonMigrationInProgress:      "Wait: it goes on when the other one ends.",
	crdmigrator.ReasonCRDKeepsChanging:         "Let the field managers that it names agree on one spec.",
	crdmigrator.ReasonServerSilent:             "Bring it back; or, if it is gone for good, delete its lease. It goes on when the lease ends, within an hour.",
}

// listRemedies are what to do where the API server does not list objects.
var listRemedies = map[string]string{
	crdmigrator.ReasonNotServed:   "See whether another API server serves the group: `kubectl get apiservices`.",
	crdmigrator.ReasonThrottled:   "Nothing: the list is tried again. If it lasts, see which clients load the API server.",
	crdmigrator.ReasonServerError: "See what is wrong with the API server: `kubectl get --raw '/readyz?verbose'`. The list is tried again.",
	crdmigrator.ReasonTimeout:     "See whether the conversion webhook answers, if the CRD has one; else whether API server and etcd are overloaded. The list is tried again.",
	crdmigrator.ReasonListRefused: "See which server refuses the list: `kubectl get --raw` with `-v=8`.",
}

// preflighted are found by a plan that tries a write, which the manager does not do:
// there, the objects that are refused are among the failures.
var preflighted = []string{crdmigrator.ReasonAdmissionDenied, crdmigrator.ReasonObjectInvalid}

func eventPage() (string, error) {
	var page strings.Builder
	page.WriteString(generated + "# Events, conditions and reasons\n\n## Conditions\n\n" +
		"At most one of the first three is True. kstatus, by which Flux and others wait, says Current when Ready is True, Failed\n" +
		"when Stalled is, and InProgress otherwise, also before anybody has looked and after a change of the spec.\n\n")
	for _, s := range []section{
		{"", conditionTable},
		{"\n## Reasons and events\n\nThe condition Ready has one of these reasons, and so do Reconciling and Stalled. An event of the same reason is on the\n" +
			"CRDMigration, in the namespace default, when reason or message change; progress is none, and no event is about a single object.\n\n", reasonTable},
		{"\n## Blockers\n\nThe condition Blocked has the reason of its first blocker; `status.blockers` has them all, each with a remedy for its own\n" +
			"case. The manager looks again by itself, at first after ten seconds and then less often, up to every ten minutes.\n\n", blockerTable},
		{"\n## Objects that are not listed\n\nWhere the API server does not list the objects of a CRD, nothing is known about them: `godwit crd plan` says Unknown, with one\n" +
			"of these reasons, or with Forbidden, NotEstablished or StorageVersionNotServed. In a CRDMigration, a reason that may end by itself\n" +
			"is in the message of ObjectsUnlisted; the others are blockers.\n\n", listTable},
	} {
		if err := s.write(&page); err != nil {
			return "", err
		}
	}
	page.WriteString("\nOf what admission refuses, [`godwit crd plan`](cli.md#godwit-crd-plan) tells before the first write. The manager does not try\n" +
		"writes: an object that is refused is among `status.failures`, with the API server's words, and nothing is trimmed.\n")
	for _, s := range []section{
		{"\n## Triggers of revision upgrades\n\nA ControllerRevisionUpgradeTrigger has the conditions Ready, Reconciling and Stalled, of which at most one is True, as well\n" +
			"as Discovered and VersionsDroppable. The reason is one of these, or one of a revision's where something could not be read:\n\n", triggerReasonTable},
		{"\n## Upgrades of revisions\n\nA ControllerRevisionUpgrade has the same three conditions. Where nothing is to be said beyond it, the reason is the\n" +
			"[phase](controllerrevisionupgrade.md#status). What `godwit revision plan` says of a revision has the same reasons.\n\n", revisionReasonTable},
	} {
		if err := s.write(&page); err != nil {
			return "", err
		}
	}
	return page.String(), nil
}

// section of a page: a table, and what is said before it.
type section struct {
	intro string
	table func() (*table, error)
}

func (s section) write(page *strings.Builder) error {
	t, err := s.table()
	if err != nil {
		return err
	}
	page.WriteString(s.intro + t.String())
	return nil
}

func triggerReasonTable() (*table, error) {
	reasons, err := constants(triggerCounts, "Reasons of a trigger's conditions.")
	t := newTable("reason", "meaning")
	for _, r := range reasons {
		t.row(code(r.value), sentence(r.doc))
	}
	return t, err
}

func revisionReasonTable() (*table, error) {
	reasons, err := constants(revisionPlans, "Reasons of items.")
	if err != nil {
		return nil, err
	}
	t := newTable("reason", "meaning", "what to do")
	for _, r := range reasons {
		what, ok := remedy.Of[r.value]
		if !ok {
			return nil, fmt.Errorf("%s of %s has no remedy", r.name, revisionPlans)
		}
		t.row(code(r.value), sentence(r.doc), what.Manager)
	}
	return t, nil
}

func conditionTable() (*table, error) {
	conditions, err := constants(kinds, "Types of conditions.")
	t := newTable("condition", "is")
	for _, c := range conditions {
		t.row(code(c.value), sentence(strings.TrimPrefix(c.doc, "is ")))
	}
	return t, err
}

// reasonTable has a row for each reason of the condition Ready, and fails where one
// has no sign.
func reasonTable() (*table, error) {
	reasons, err := constants(kinds, "Reasons of conditions.")
	if err != nil {
		return nil, err
	}
	t := newTable("reason", "condition that is True", "event", "meaning")
	for _, r := range reasons {
		if r.value == v1alpha1.ReasonNotBlocked {
			continue // of the condition Blocked alone
		}
		var conditions, events []string
		for _, s := range crdmigration.Signs() {
			if s.Reason == r.value {
				conditions, events = append(conditions, code(s.Condition)), append(events, s.EventType)
			}
		}
		if len(conditions) == 0 {
			return nil, fmt.Errorf("%s of %s has no sign in package crdmigration", r.name, kinds)
		}
		t.row(code(r.value), either(conditions), either(events), sentence(r.doc))
	}
	return t, nil
}

// either joins what may be the case.
func either(all []string) string {
	all = slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
	return strings.Join(all, " or ")
}

func listTable() (*table, error) {
	reasons, err := constants(lists, "Reasons of an [UnlistedError]")
	if err != nil {
		return nil, err
	}
	t := newTable("reason", "meaning", "what to do")
	for _, r := range reasons {
		remedy, ok := listRemedies[r.value]
		if !ok {
			return nil, fmt.Errorf("%s of %s has no remedy", r.name, lists)
		}
		t.row(code(r.value), sentence(r.doc), remedy)
	}
	return t, nil
}

func blockerTable() (*table, error) {
	reasons, err := constants(plans, "Reasons of blockers.")
	if err != nil {
		return nil, err
	}
	t := newTable("reason", "meaning", "what to do")
	for _, r := range reasons {
		if slices.Contains(preflighted, r.value) {
			continue
		}
		remedy, ok := remedies[r.value]
		if !ok {
			return nil, fmt.Errorf("%s of %s has no remedy", r.name, plans)
		}
		t.row(code(r.value), sentence(r.doc), remedy)
	}
	return t, nil
}
