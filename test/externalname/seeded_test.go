package externalname_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance"
)

// crashes are the checks that have no meaning for a bare client.
var crashes = map[conformance.CheckName]conformance.State{
	conformance.KilledBeforeCreate: conformance.DoesNotApply,
	conformance.KilledAfterCreate:  conformance.DoesNotApply,
	conformance.KilledAfterUpdate:  conformance.DoesNotApply,
}

func barePersons(without []string, change func(*plain[personParameters])) conformance.Harness {
	return harnessFor("Person", func(w *wire) conformance.Provider {
		return bareProvider("Person", func(m manager.Manager) managed.ExternalClient {
			c := plainPerson(w)
			c.kube = m.GetClient()
			if change != nil {
				change(c)
			}
			return wrapped(c, rules(m, personScheme), without...)
		})
	})
}

func bareMemberships(without []string, change func(*plain[membershipParameters])) conformance.Harness {
	return harnessFor("Membership", func(w *wire) conformance.Provider {
		return bareProvider("Membership", func(m manager.Manager) managed.ExternalClient {
			c := plainMembership(w)
			if change != nil {
				change(c)
			}
			return wrapped(c, rules(m, externalname.Scheme[member]{Codec: memberNames}), without...)
		})
	})
}

// A bare client with all rules follows the contract, as far as a bare client can.
func TestConformanceOfBareClient(t *testing.T) {
	t.Parallel()
	t.Run("Person", func(t *testing.T) {
		t.Parallel()
		report := conformance.Run(t, checkedPerson(), barePersons(nil, nil))
		undecided := map[conformance.CheckName]conformance.State{
			conformance.MissingParentIsNoDrift: conformance.DoesNotApply,
			conformance.CreatedCanBeDeleted:    conformance.DoesNotApply,
			conformance.ChangedKeyIsPersisted:  conformance.DoesNotApply,
		}
		maps.Copy(undecided, crashes)
		checkUndecided(t, report, undecided)
		if cause := report.Of(conformance.KilledAfterCreate).Detail; !strings.Contains(cause, "bare ExternalClient") {
			t.Errorf("the report does not say why crashes do not apply: %s", cause)
		}
	})
	t.Run("Membership", func(t *testing.T) {
		t.Parallel()
		harness := bareMemberships(nil, nil)
		// What has no meaning for a person.
		harness.Only = []conformance.CheckName{
			conformance.MissingParentIsNoDrift, conformance.CreatedCanBeDeleted, conformance.ChangedKeyIsPersisted, conformance.MalformedNamesAreRefused,
		}
		report := conformance.Run(t, checkedMembership(), harness)
		if n := len(report.With(conformance.Passed)); n != len(harness.Only) {
			t.Errorf("%d checks passed, want %d", n, len(harness.Only))
		}
	})
}

// anyGUID is a parser that accepts what parsers of UUIDs accept.
func anyGUID(name string) (string, error) {
	digits := strings.NewReplacer("-", "", "{", "", "}", "").Replace(strings.TrimPrefix(name, "urn:uuid:"))
	if len(digits) != 32 {
		return "", errors.New("is not a valid GUID format")
	}
	return strings.ToLower(strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")), nil
}

// createdWithin reports a creation that began less than a minute ago.
func createdWithin(mg resource.Managed) bool {
	return meta.GetExternalName(mg) == "" && time.Since(meta.GetExternalCreatePending(mg)) < time.Minute
}

// unreadableIsMissing is what authors write for an object that has no name yet.
func unreadableIsMissing(err error) bool {
	var invalid *externalname.InvalidError
	return isNotFound(err) || errors.As(err, &invalid)
}

// 52: each bug is caught by the check that is named with it. The client without the bug passes all
// checks: TestConformanceOfBareClient.
func TestConformanceFindsBugs(t *testing.T) {
	t.Parallel()
	persons, memberships := checkedPerson(), checkedMembership()
	cases := map[string]struct {
		kind    conformance.Kind
		harness conformance.Harness
		caught  conformance.CheckName
		// evidence is part of what the check reports.
		evidence string
		// also are further checks that may fail, because their objects meet the same bug.
		also []conformance.CheckName
	}{
		"adopts by the spec when the name is empty": {
			persons, barePersons([]string{"UnnamedIsAbsent"}, func(p *plain[personParameters]) {
				p.looksUp = func(mg resource.Managed) bool { return meta.GetExternalName(mg) == "" }
			}),
			conformance.EmptyNameAdoptsNothing, "was adopted, although the user has not named it",
			[]conformance.CheckName{conformance.ExistingIsNotAdopted, conformance.ForeignIsNotAdopted, conformance.StatusSurvives},
		},
		"takes several matches for none, and creates": {
			persons, barePersons(nil, func(p *plain[personParameters]) {
				p.choose = func(found []entry) (entry, error) {
					if len(found) != 1 {
						return entry{}, crossplane.ErrNotFound
					}
					return found[0], nil
				}
			}),
			conformance.SeveralMatchesAreRefused, "", nil,
		},
		"takes every message with not found for a missing resource": {
			memberships, bareMemberships(nil, func(p *plain[membershipParameters]) {
				p.isMissing = func(err error) bool { return strings.Contains(err.Error(), "not found") }
			}),
			conformance.MissingParentIsNoDrift, "Create:", nil,
		},
		"accepts URNs, braces and 32 digits as GUIDs": {
			persons, barePersons([]string{"NamesMustParse"}, func(p *plain[personParameters]) { p.id = anyGUID }),
			conformance.MalformedNamesAreRefused, "has called the external system", nil,
		},
		"writes names that it can't read": {
			memberships, bareMemberships(nil, func(p *plain[membershipParameters]) {
				p.name = func(e entry) (string, error) { return e.Parent + "/" + e.Name, nil }
				p.check = func(membershipParameters) error { return nil }
			}),
			conformance.CreatedCanBeDeleted, "can't be observed", nil,
		},
		"deletes in Observe what differs": {
			persons, barePersons(nil, func(p *plain[personParameters]) {
				p.observed = func(ctx context.Context, o *person, e entry) error {
					if p.fromEntry(e) == o.Spec.ForProvider {
						return nil
					}
					return p.to.Remove(ctx, e.ID)
				}
			}),
			conformance.ObserveOnlyWritesNothing, "Delete:",
			[]conformance.CheckName{conformance.UpdateIsApplied},
		},
		"recovers what was created within a minute": {
			persons, barePersons([]string{"UnnamedIsAbsent"}, func(p *plain[personParameters]) {
				p.looksUp = createdWithin
				p.isMissing = unreadableIsMissing
			}),
			conformance.ForeignIsNotAdopted, "which another client created at the same time, was adopted",
			[]conformance.CheckName{conformance.EmptyNameAdoptsNothing, conformance.SeveralMatchesAreRefused, conformance.ExistingIsNotAdopted, conformance.StatusSurvives, conformance.UnnamedDeletesNothing},
		},
		"loses the key that an update changes": {
			memberships, bareMemberships([]string{"NamesArePersisted"}, nil),
			conformance.ChangedKeyIsPersisted, "the name that the update gave is lost", nil,
		},
		"resets the status by reading the object again before it writes the name": {
			persons, barePersons([]string{"NamesArePersisted", "ObserveKeepsSpec"}, func(p *plain[personParameters]) {
				p.observed = func(ctx context.Context, o *person, _ entry) error {
					name := meta.GetExternalName(o)
					if err := p.kube.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
						return err
					}
					meta.SetExternalName(o, name)
					return p.kube.Update(ctx, o)
				}
			}),
			conformance.StatusSurvives, "Synced without status.atProvider",
			[]conformance.CheckName{conformance.ConflictsAreReported, conformance.CreatedBecomesReady},
		},
		"updates a resource that does not exist": {
			persons, barePersons([]string{"AbsentNeedsCreate"}, nil),
			conformance.AbsentNeedsCreate, "Update:", nil,
		},
		"deletes a second time": {
			persons, barePersons([]string{"DeleteOnce"}, nil),
			conformance.DeleteOnce, "while the external system deletes", nil,
		},
		"swallows a conflict": {
			persons, barePersons([]string{"ConflictsAreReported"}, nil),
			conformance.ConflictsAreReported, "with a conflict", nil,
		},
		"reports a resource that is gone as an error": {
			persons, barePersons([]string{"DeleteAcceptsNotFound"}, nil),
			conformance.DeleteAcceptsNotFound, "was reported as an error", nil,
		},
		"does not report differences": {
			persons, barePersons([]string{"DiffIsReported"}, nil),
			conformance.DiffIsReported, "condition Drift is not True", nil,
		},
		"writes the spec in Observe": {
			persons, barePersons([]string{"ObserveKeepsSpec"}, func(p *plain[personParameters]) {
				p.observed = func(ctx context.Context, o *person, _ entry) error {
					status := o.Status
					o.Spec.ForProvider.Title = "late-initialized"
					err := p.kube.Update(ctx, o)
					o.Status = status
					return err
				}
			}),
			conformance.SpecIsNotWritten, "has changed the spec",
			[]conformance.CheckName{conformance.ConflictsAreReported},
		},
		"updates at every poll, because it compares in another way than the directory": {
			persons, barePersons(nil, func(p *plain[personParameters]) {
				p.same = func(personParameters, personParameters) bool { return false }
			}),
			conformance.UpToDateIsNotUpdated, "although the spec has not changed", nil,
		},
		"deletes by the spec when the name is empty": {
			persons, barePersons([]string{"UnnamedIsAbsent"}, func(p *plain[personParameters]) {
				p.looksUp = func(mg resource.Managed) bool {
					return meta.GetExternalName(mg) == mg.GetName() || meta.GetExternalName(mg) == "" && meta.WasDeleted(mg)
				}
				p.isMissing = unreadableIsMissing
			}),
			conformance.UnnamedDeletesNothing, "which fits its spec", nil,
		},
		"takes any error of a read for a missing resource": {
			persons, barePersons(nil, func(p *plain[personParameters]) {
				p.isMissing = func(err error) bool {
					return isNotFound(err) || slices.Contains([]error{answers[conformance.Refused], answers[conformance.ServerError], answers[conformance.Dropped]}, err)
				}
			}),
			conformance.ReadErrorIsNoAbsence, "for a missing external resource", nil,
		},
		"never says that a resource can be used": {
			persons, barePersons(nil, func(p *plain[personParameters]) {
				p.observed = func(_ context.Context, o *person, e entry) error {
					if e.State != crossplane.Deleting {
						o.SetConditions(xpv2.Creating())
					}
					return nil
				}
			}),
			conformance.CreatedBecomesReady, "expected: Ready", nil,
		},
		"deletes by the spec, not by the name": {
			persons, barePersons(nil, func(p *plain[personParameters]) {
				p.toDelete = func(ctx context.Context, o *person) (ids []string, err error) {
					found, err := p.find(ctx, o.Spec.ForProvider)
					for _, e := range found {
						ids = append(ids, e.ID)
					}
					return ids, err
				}
			}),
			conformance.DeleteGoesByName, "has deleted external resource", nil,
		},
	}
	for bug, tc := range cases {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			// make conformance runs all checks, to see that no other one takes the bug for its own.
			tc.harness.Timeout = 2 * time.Minute // crossplane-runtime delays an object that has failed by up to one
			if all := os.Getenv("GODWIT_CONFORMANCE") != ""; !all {
				tc.harness.Only = []conformance.CheckName{tc.caught}
				if tc.caught == conformance.CreatedBecomesReady {
					tc.harness.Timeout = 10 * time.Second // The object does not fail. It never becomes Ready.
				}
			}
			report, err := conformance.Prove(t.Context(), tc.kind, tc.harness)
			if err != nil {
				t.Fatal(err)
			}
			result := report.Of(tc.caught)
			if result.State != conformance.Failed || !strings.Contains(result.Detail, tc.evidence) {
				t.Errorf("%s is %s: %s", tc.caught, result.State, result.Detail)
			}
			for _, other := range report.With(conformance.Failed) {
				if other.Check != tc.caught && !slices.Contains(tc.also, other.Check) {
					t.Errorf("%s fails as well: %s", other.Check, other.Detail)
				}
			}
			t.Logf("%q is caught by %s: %s", bug, tc.caught, result.Detail)
		})
	}
}
