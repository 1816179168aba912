package externalname_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance"
)

// admins is the group of all memberships in these tests: the first entry that a memory makes.
const admins = "00000000-0000-4000-8000-000000000001"

func manifest(kind, id string, parameters any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"forProvider": parameters}}}
	o.SetGroupVersionKind(groupVersion.WithKind(kind))
	o.SetName(id)
	return o
}

// checkedPerson has names that the directory makes.
func checkedPerson() conformance.Kind {
	return conformance.Kind{
		Manifest: func(_, id string) *unstructured.Unstructured {
			return manifest("Person", id, map[string]any{"name": id, "mail": id + "@example.org"})
		},
		Shape:      externalname.GUID().Describe(),
		Unknown:    unknownID,
		Change:     `{"spec":{"forProvider":{"title":"manager"}}}`,
		LookupName: func(mg *unstructured.Unstructured) string { return mg.GetName() },
		Exempt:     map[conformance.CheckName]string{conformance.MissingParentIsNoDrift: "a person is part of nothing"},
	}
}

// checkedMembership has names that consist of what the spec says.
func checkedMembership() conformance.Kind {
	return conformance.Kind{
		Manifest: func(_, id string) *unstructured.Unstructured {
			return manifest("Membership", id, map[string]any{"group": admins, "member": "cn=" + id})
		},
		Shape:   memberNames.Describe(),
		Unknown: admins + "/cn=missing",
		Change:  `{"spec":{"forProvider":{"title":"manager"}}}`,
		Rename:  `{"spec":{"forProvider":{"member":"cn=renamed"}}}`,
		HardKeys: []string{
			`{"spec":{"forProvider":{"member":"cn=jane/doe"}}}`,
			`{"spec":{"forProvider":{"member":" 50% "}}}`,
			`{"spec":{"forProvider":{"member":".."}}}`,
		},
		Exempt: map[conformance.CheckName]string{conformance.SeveralMatchesAreRefused: "a membership is never looked up by its spec"},
	}
}

// systemOf is the external system of one check. List and Add use external names.
func systemOf(m *memory, w *wire, kind string) conformance.System {
	nameOf := func(e entry) string { return e.ID }
	idOf := func(name string) string { return name }
	if kind == "Membership" {
		nameOf = func(e entry) string {
			name, err := memberNames.Format(member{Group: e.Parent, Member: e.Name})
			if err != nil {
				return e.ID
			}
			return name
		}
		idOf = func(name string) string {
			key, err := memberNames.Parse(name)
			if err != nil {
				return name
			}
			return memberID(entry{Parent: key.Group, Name: key.Member})
		}
	}
	return conformance.System{
		Add: func(ctx context.Context, mg *unstructured.Unstructured) (string, error) {
			made, err := m.Add(ctx, entryFrom(mg))
			return nameOf(made), err
		},
		AddTwins: func(ctx context.Context, mg *unstructured.Unstructured) error {
			e := entryFrom(mg)
			_, one := m.Add(ctx, entry{Name: "one", Mail: e.Mail})
			_, two := m.Add(ctx, entry{Name: "two", Mail: e.Mail})
			return errors.Join(one, two)
		},
		List: func(context.Context) ([]string, error) {
			var names []string
			for _, e := range m.all() {
				if (e.Parent != "") == (kind == "Membership") {
					names = append(names, nameOf(e))
				}
			}
			return names, nil
		},
		Change: func(_ context.Context, name string) error {
			m.change(idOf(name), func(e *entry) bool { e.Title = "changed"; return true })
			return nil
		},
		Remove: func(_ context.Context, name string) error {
			m.change(idOf(name), func(*entry) bool { return false })
			return nil
		},
		HideParent: func(_ context.Context, name string) (func(context.Context) error, error) {
			group, _, _ := strings.Cut(name, "/")
			var hidden entry
			m.change(group, func(e *entry) bool { hidden = *e; return false })
			return func(context.Context) error {
				m.change(group, func(e *entry) bool { *e = hidden; return true })
				return nil
			}, nil
		},
		SlowDeletion: func(context.Context) (func(context.Context) error, error) {
			m.setSlow(true)
			return func(context.Context) error { m.setSlow(false); return nil }, nil
		},
		OnCall: func(f func(conformance.Operation) conformance.Fault) {
			w.set(func(_ context.Context, call string, send func() error) error {
				return f(operations[call]).Apply(send, answers)
			})
		},
	}
}

var operations = map[string]conformance.Operation{
	"Add": conformance.Create, "Read": conformance.Read, "Write": conformance.Update, "Remove": conformance.Delete, "Search": conformance.Search,
}

// answers are what a client of the directory returns.
var answers = map[conformance.Answer]error{
	conformance.Refused:     errors.New("quota exceeded"),
	conformance.ServerError: errors.New("the directory is broken"),
	conformance.Conflict:    kerrors.NewConflict(schema.GroupResource{Resource: "entries"}, "entry", io.ErrNoProgress),
	conformance.Lost:        io.ErrUnexpectedEOF,
	conformance.Dropped:     io.ErrUnexpectedEOF,
}

// entryFrom returns what another client would create for an object.
func entryFrom(mg *unstructured.Unstructured) entry {
	text := func(field string) string {
		s, _, _ := unstructured.NestedString(mg.Object, "spec", "forProvider", field)
		return s
	}
	if mg.GetKind() == "Membership" {
		return entry{Parent: text("group"), Name: text("member"), Title: text("title")}
	}
	return entry{Name: text("name"), Mail: text("mail"), Title: text("title")}
}

// harnessFor opens a directory for each check, and a provider on it.
func harnessFor(kind string, provider func(*wire) conformance.Provider) conformance.Harness {
	return conformance.Harness{
		Config: shared.Config(),
		Open: func(ctx context.Context, _ string) (conformance.System, conformance.Provider, error) {
			m := newMemory()
			if _, err := m.Add(ctx, entry{Name: "admins"}); err != nil {
				return conformance.System{}, conformance.Provider{}, err
			}
			w := newWire(m)
			return systemOf(m, w, kind), provider(w), nil
		},
		Parallel: 6,
		Poll:     pollEvery,
		Recovery: 3 * time.Second,
	}
}

// setUp adds the controller of a kind of package crossplane.
func setUp(m manager.Manager, r interface {
	Options(manager.Manager, event.Recorder) ([]managed.ReconcilerOption, error)
}, kind string) error {
	options, err := r.Options(m, event.NewAPIRecorder(m.GetEventRecorderFor("conformance")))
	if err != nil {
		return err
	}
	return addController(m, groupVersion.WithKind(kind), options...)
}

// The kinds of package crossplane follow the contract.
func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("Person", func(t *testing.T) {
		t.Parallel()
		report := conformance.Run(t, checkedPerson(), harnessFor("Person", func(w *wire) conformance.Provider {
			return conformance.Provider{AddToScheme: addToScheme, Setup: func(m manager.Manager) error { return setUp(m, recovering(w), "Person") }}
		}))
		checkUndecided(t, report, map[conformance.CheckName]conformance.State{
			conformance.MissingParentIsNoDrift: conformance.DoesNotApply,
			conformance.CreatedCanBeDeleted:    conformance.DoesNotApply,
			conformance.ChangedKeyIsPersisted:  conformance.DoesNotApply,
			conformance.KilledAfterUpdate:      conformance.DoesNotApply,
		})
	})
	t.Run("Membership", func(t *testing.T) {
		t.Parallel()
		report := conformance.Run(t, checkedMembership(), harnessFor("Membership", func(w *wire) conformance.Provider {
			kind := memberships(w)
			kind.RecoveryDelay = soon
			return conformance.Provider{AddToScheme: addToScheme, Setup: func(m manager.Manager) error { return setUp(m, kind, "Membership") }}
		}))
		checkUndecided(t, report, map[conformance.CheckName]conformance.State{conformance.SeveralMatchesAreRefused: conformance.DoesNotApply})
	})
}

// checkUndecided compares the checks that neither passed nor failed.
func checkUndecided(t *testing.T, report conformance.Report, want map[conformance.CheckName]conformance.State) {
	t.Helper()
	for _, result := range report.Results {
		expected, ok := want[result.Check]
		if decided := result.State == conformance.Passed || result.State == conformance.Failed; decided == ok || ok && result.State != expected {
			t.Errorf("%s is %s (%s), want %q", result.Check, result.State, result.Detail, expected)
		}
	}
}
