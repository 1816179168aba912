package externalname_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

func (w *world) membership(name string, change func(*membership)) *membership {
	w.t.Helper()
	m := &membership{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}}
	change(m)
	w.create(m)
	return m
}

func (w *world) awaitMembership(m *membership, what string, fits func(*membership) bool) {
	w.t.Helper()
	w.await(what, func() string {
		if fits(get(w, m)) {
			return ""
		}
		return strings.Join([]string{what, meta.GetExternalName(m), m.GetCondition(xpv2.TypeSynced).Message}, "; ")
	})
}

func boundMember(m *membership) bool {
	return synced(m) && meta.GetExternalName(m) != "" && m.Annotations[crossplane.AnnotationBoundName] == meta.GetExternalName(m)
}

func refusedMember(text string) func(*membership) bool {
	return func(m *membership) bool {
		c := m.GetCondition(xpv2.TypeSynced)
		return c.Status == corev1.ConditionFalse && strings.Contains(c.Message, text)
	}
}

// 23: a key with slashes, percent signs and outer spaces is created, observed and deleted.
func TestCompoundKey(t *testing.T) {
	w := newWorld(t)
	group := w.add(entry{Name: "admins"})
	run(w, memberships(w.wire), options{})
	m := w.membership("jane", func(m *membership) {
		m.Spec.ForProvider = membershipParameters{Group: group.ID, Member: " cn=Jane/Doe,ou=50%+x "}
	})
	w.awaitMembership(m, "created", boundMember)
	if got, want := meta.GetExternalName(m), group.ID+"/%20cn=jane%2Fdoe,ou=50%25+x%20"; got != want {
		t.Errorf("external name is %q, want %q", got, want)
	}
	w.checkEntries(2)
	w.checkClean(m)
	w.delete(m)
	w.awaitGone(m)
	w.checkEntries(1)
}

// 24: a key in another letter case is the same key.
func TestCompoundKeyCase(t *testing.T) {
	w := newWorld(t)
	group := w.add(entry{Name: "admins"})
	w.add(entry{Parent: group.ID, Name: "cn=jane"})
	run(w, memberships(w.wire), options{})
	m := w.membership("jane", func(m *membership) {
		m.Spec.ForProvider = membershipParameters{Group: group.ID, Member: "cn=jane"}
		meta.SetExternalName(m, strings.ToUpper(group.ID)+"/CN=Jane")
	})
	w.awaitMembership(m, "found", synced2)
	w.checkEntries(2)
	if n := w.wire.count("Add"); n != 0 {
		t.Errorf("%d creations", n)
	}
}

func synced2(m *membership) bool {
	return synced(m) && m.Annotations[crossplane.AnnotationBoundName] != ""
}

// A malformed compound name is an error before any call, whatever is wrong with it.
func TestMalformedCompoundName(t *testing.T) {
	w := newWorld(t)
	group := w.add(entry{Name: "admins"})
	run(w, memberships(w.wire), options{})
	refused := map[string]*membership{}
	for reason, name := range map[string]string{
		"WrongSegmentCount": group.ID + "/a/b",
		"Blank":             group.ID + "/%20",
		"PathElement":       group.ID + "/..",
		"MalformedEscape":   group.ID + "/%zz",
		"ControlCharacter":  group.ID + "/cn=jane\ncn=admin",
		"NotGUID":           "..%2F../cn=jane",
		"TooLong":           group.ID + "/" + strings.Repeat("%61", 200<<10/3),
	} {
		refused[reason] = w.membership(strings.ToLower(reason), func(m *membership) {
			m.Spec.ForProvider = membershipParameters{Group: group.ID, Member: "cn=jane"}
			meta.SetExternalName(m, name)
		})
	}
	refused["PathElement, escaped"] = w.membership("escaped", func(m *membership) {
		m.Spec.ForProvider = membershipParameters{Group: group.ID, Member: "cn=jane"}
		meta.SetExternalName(m, group.ID+"/%2E%2e")
	})
	for reason, m := range refused {
		reason, _, _ = strings.Cut(reason, ",")
		w.awaitMembership(m, reason, refusedMember(reason))
	}
	if n := w.wire.count(); n != 0 {
		t.Errorf("%d calls: %v", n, w.wire.calls)
	}
	w.checkEntries(1)
}

// 25, 26: a key that can't be a name is refused before it is created.
func TestKeyIsCheckedBeforeCreate(t *testing.T) {
	for reason, member := range map[string]string{
		"TooLong":     strings.Repeat("a", 513-37),
		"Blank":       "  ",
		"PathElement": "..",
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			group := w.add(entry{Name: "admins"})
			run(w, memberships(w.wire), options{})
			m := w.membership("m", func(m *membership) {
				m.Spec.ForProvider = membershipParameters{Group: group.ID, Member: member}
			})
			w.awaitMembership(m, "refused", refusedMember(reason))
			if n := w.wire.count(); n != 0 {
				t.Errorf("%d calls: %v", n, w.wire.calls)
			}
			w.patch(m, `{"spec":{"forProvider":{"member":"`+strings.Repeat("a", 512-37)+`"}}}`)
			w.awaitMembership(m, "created", boundMember) // 25: 512 bytes are allowed.
		})
	}
}

// 28: a part of the key that changes in an update is persisted.
func TestUpdateChangesTheKey(t *testing.T) {
	w := newWorld(t)
	group := w.add(entry{Name: "admins"})
	run(w, memberships(w.wire), options{})
	m := w.membership("m", func(m *membership) { m.Spec.ForProvider = membershipParameters{Group: group.ID, Member: "cn=jane"} })
	w.awaitMembership(m, "created", boundMember)
	w.patch(m, `{"spec":{"forProvider":{"member":"cn=jane-doe"}}}`)
	w.awaitMembership(m, "renamed", func(m *membership) bool {
		return boundMember(m) && meta.GetExternalName(m) == group.ID+"/cn=jane-doe" && m.Status.AtProvider.Member == "cn=jane-doe"
	})
	w.checkEntries(2)
	w.checkClean(m)
	if n := w.wire.count("Add"); n != 1 {
		t.Errorf("%d creations", n)
	}

	// Another group is another identity.
	w.patch(m, `{"spec":{"forProvider":{"group":"`+unknownID+`","title":"x"}}}`)
	w.awaitMembership(m, "refused", refusedMember(`segment "group" of the key can't change`))
	w.checkEntries(2)
}

// 29: a provider that is killed between the update and the record of the new name finds the resource
// under the new name.
func TestKilledAfterUpdate(t *testing.T) {
	w := newWorld(t)
	group := w.add(entry{Name: "admins"})
	p := run(w, memberships(w.wire), options{})
	m := w.membership("m", func(m *membership) { m.Spec.ForProvider = membershipParameters{Group: group.ID, Member: "cn=jane"} })
	w.awaitMembership(m, "created", boundMember)
	w.wire.set(func(_ context.Context, call string, send func() error) error {
		err := send()
		if call == "Write" {
			p.kill()
		}
		return err
	})
	w.patch(m, `{"spec":{"forProvider":{"member":"cn=jane-doe"}}}`)
	<-p.done
	if got := meta.GetExternalName(get(w, m)); got != group.ID+"/cn=jane" {
		t.Fatalf("external name is %q: the process was not killed in between", got)
	}
	w.wire.set(nil)
	run(w, memberships(w.wire), options{})
	w.awaitMembership(m, "found", func(m *membership) bool { return boundMember(m) && meta.GetExternalName(m) == group.ID+"/cn=jane-doe" })
	w.checkEntries(2)
	w.checkClean(m)
	if n := w.wire.count("Add"); n != 1 {
		t.Errorf("%d creations", n)
	}
}

// 30, 31: a key that the spec determines is enough to recover, with the proof that the entry is ours.
func TestCompoundKeyRecovers(t *testing.T) {
	w := newWorld(t)
	group := w.add(entry{Name: "admins"})
	kind := memberships(w.wire)
	kind.RecoveryDelay = soon
	w.wire.set(func(ctx context.Context, call string, send func() error) error {
		if call != "Add" {
			return send()
		}
		for _, e := range w.store.all() {
			if e.Name == "cn=foreign" {
				return io.EOF
			}
		}
		if err := send(); err != nil {
			return err
		}
		_, _ = w.store.Add(ctx, entry{Parent: group.ID, Name: "cn=foreign"})
		return io.EOF
	})
	run(w, kind, options{})
	ours := w.membership("ours", func(m *membership) { m.Spec.ForProvider = membershipParameters{Group: group.ID, Member: "cn=jane"} })
	w.awaitMembership(ours, "recovered", boundMember)
	w.checkClean(ours)
	foreign := w.membership("foreign", func(m *membership) { m.Spec.ForProvider = membershipParameters{Group: group.ID, Member: "cn=foreign"} })
	w.awaitMembership(foreign, "refused", refusedMember("proven to come from it"))
	w.checkEntries(3)
}

// 41: a missing group does not mean that the membership is missing.
func TestParentNotFound(t *testing.T) {
	w := newWorld(t)
	run(w, memberships(w.wire), options{})
	m := w.membership("m", func(m *membership) {
		m.Spec.ForProvider = membershipParameters{Group: unknownID, Member: "cn=jane"}
		meta.SetExternalName(m, unknownID+"/cn=jane")
	})
	w.awaitMembership(m, "refused", refusedMember("parent of the external resource not found"))
	w.passes(3)
	if n := w.wire.count("Add"); n != 0 {
		t.Errorf("%d creations", n)
	}
}
