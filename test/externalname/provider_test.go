package externalname_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ldapv1 "github.com/godwit-dev/godwit/examples/provider-ldap/api/v1"
	ldap "github.com/godwit-dev/godwit/examples/provider-ldap/directory"
	"github.com/godwit-dev/godwit/examples/provider-ldap/provider"
	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/externalname/crossplane/mirror"
)

// 1, 2, 3, 4, 35: a person gets the entryUUID for a name, keeps it when it is renamed and moved, and one that exists is
// adopted by its name only.
func TestProviderPerson(t *testing.T) {
	w := newDirectoryWorld(t)
	run(w.world, provider.Persons(w.at), options{})
	jane := w.ldapPerson("Jane")
	jane.Spec.ForProvider.Title = "engineer"
	w.create(jane)
	awaitObject(w.world, jane, "created", func(p *ldapv1.Person) bool { return isBound(p) && ready(p) })
	id := meta.GetExternalName(jane)
	if ids := w.ids("inetOrgPerson"); !slices.Equal(ids, []string{id}) {
		t.Errorf("external name %s, entries %v", id, ids)
	}
	if got, want := jane.Status.AtProvider, jane.Spec.ForProvider; got != want {
		t.Errorf("status.atProvider is %+v, want %+v", got, want)
	}
	w.checkClean(jane)

	w.patch(jane, `{"spec":{"forProvider":{"uid":"Jane, Q. Public","title":null,"mail":"jane@example.org"}}}`)
	awaitObject(w.world, jane, "renamed", func(p *ldapv1.Person) bool {
		at := p.Status.AtProvider
		return isBound(p) && at.UID == "Jane, Q. Public" && at.Title == "" && at.Mail == "jane@example.org" && p.GetCondition(crossplane.TypeDrift).Status == corev1.ConditionFalse
	})
	if got := meta.GetExternalName(jane); got != id {
		t.Errorf("external name became %s", got)
	}

	twin := w.ldapPerson("Jane, Q. Public")
	twin.Name = "twin"
	w.create(twin)
	awaitObject(w.world, twin, "refused", isRefused[*ldapv1.Person]("already exists", "crossplane.io/external-name=<guid>"))
	if name := meta.GetExternalName(twin); name != "" {
		t.Errorf("external name is %q", name)
	}
	w.delete(twin)
	w.awaitGone(twin)

	w.with(func(c *ldap.Client) error { return c.Delete(t.Context(), id) })
	awaitObject(w.world, jane, "created again", func(p *ldapv1.Person) bool { return isBound(p) && meta.GetExternalName(p) != id })
	w.delete(jane)
	w.awaitGone(jane)
	if ids := w.ids("inetOrgPerson"); len(ids) != 0 {
		t.Errorf("entries %v are left", ids)
	}
}

// 16, 17, 20, 21: the name of the object is replaced by the entryUUID of the one person with the mail. Two are an error.
func TestProviderLegacyName(t *testing.T) {
	w := newDirectoryWorld(t)
	id := w.addPerson("jane", "jane@example.org")
	one, two := w.addPerson("john", "j@example.org"), w.addPerson("joan", "j@example.org")
	run(w.world, provider.Persons(w.at), options{})
	jane, both := w.ldapPerson("jane"), w.ldapPerson("both")
	jane.Spec.ManagedResourceSpec, jane.Spec.ForProvider.Mail = spec("Observe"), "jane@example.org"
	both.Spec.ForProvider.Mail = "j@example.org"
	for _, p := range []*ldapv1.Person{jane, both} {
		meta.SetExternalName(p, p.Name)
		w.create(p)
	}
	awaitObject(w.world, jane, "renamed", func(p *ldapv1.Person) bool { return isBound(p) && meta.GetExternalName(p) == id })
	awaitObject(w.world, both, "refused", isRefused[*ldapv1.Person](one, two))
	if ids := w.ids("inetOrgPerson"); len(ids) != 3 {
		t.Errorf("entries are %v", ids)
	}
}

// 30, 31: the server commits and the answer gets lost; the entry is found by its token, and there is one.
func TestProviderAnswerLost(t *testing.T) {
	w := newDirectoryWorld(t)
	var answers atomic.Int64
	w.through(newProxy(t, server.Address(), func(tag byte) bool {
		return (tag == addResponse || tag == modifyResponse) && answers.Add(1) <= 2
	}))
	persons, memberships := provider.Persons(w.at), provider.Memberships(w.at)
	persons.RecoveryDelay, memberships.RecoveryDelay = soon, soon
	run(w.world, persons, options{})
	run(w.world, memberships, options{})
	group := w.addGroup("admins")
	jane := w.ldapPerson("jane")
	w.create(jane)
	m := w.ldapMembership("m", group, "uid=jane,"+w.config.BaseDN)
	w.create(m)
	awaitObject(w.world, jane, "recovered", isBound[*ldapv1.Person])
	awaitObject(w.world, m, "recovered", isBound[*ldapv1.Membership])
	if ids, members := w.ids("inetOrgPerson"), w.members(group); len(ids) != 1 || len(members) != 1 || answers.Load() < 2 {
		t.Errorf("entries %v, members %v, %d answers", ids, members, answers.Load())
	}
	w.checkClean(jane)
	w.checkClean(m)
}

// 32: the request never arrives, and another client adds the same person in the same moment.
func TestProviderForeignEntry(t *testing.T) {
	w := newDirectoryWorld(t)
	var once sync.Once
	foreign := make(chan string, 1)
	w.through(newProxy(t, server.Address(), func(tag byte) (cut bool) {
		if tag == addRequest {
			once.Do(func() { foreign <- w.addPerson("jane", ""); cut = true })
		}
		return cut
	}))
	persons := provider.Persons(w.at)
	persons.RecoveryDelay = soon
	run(w.world, persons, options{})
	jane := w.ldapPerson("jane")
	w.create(jane)
	added := <-foreign
	awaitObject(w.world, jane, "refused", isRefused[*ldapv1.Person]("proven to come from it", added))
	w.annotate(jane, meta.AnnotationKeyExternalName, added) // a remedy
	awaitObject(w.world, jane, "adopted", isBound[*ldapv1.Person])
	w.checkClean(jane)
}

func (w *directoryWorld) ldapMembership(name, group, member string) *ldapv1.Membership {
	m := &ldapv1.Membership{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}}
	m.Spec = ldapv1.MembershipSpec{ManagedResourceSpec: spec(), ForProvider: ldapv1.MembershipParameters{Group: group, Member: member}}
	return m
}

// 23, 24, 28, 41: a membership, whose key has a DN with slashes, percent signs and spaces, and may change.
func TestProviderMembership(t *testing.T) {
	w := newDirectoryWorld(t)
	run(w.world, provider.Groups(w.at), options{})
	run(w.world, provider.Memberships(w.at), options{})
	admins := &ldapv1.Group{ObjectMeta: metav1.ObjectMeta{Name: "admins", Namespace: w.namespace}}
	admins.Spec = ldapv1.GroupSpec{ManagedResourceSpec: spec(), ForProvider: ldapv1.GroupParameters{Parent: w.config.BaseDN, CommonName: "admins"}}
	w.create(admins)
	awaitObject(w.world, admins, "created", isBound[*ldapv1.Group])
	group := meta.GetExternalName(admins)

	m := w.ldapMembership("m", "", `CN=Jane/Doe 50%\+x,OU=People,dc=example,dc=org`)
	m.Spec.ForProvider.GroupRef = newRef("admins")
	w.create(m)
	awaitObject(w.world, m, "created", isBound[*ldapv1.Membership])
	want := group + `/cn=jane%2Fdoe 50%25\+x,ou=people,dc=example,dc=org`
	if got := meta.GetExternalName(m); got != want {
		t.Errorf("external name is %q, want %q", got, want)
	}
	if got := w.members(group); !slices.Equal(got, []string{`cn=Jane/Doe 50%\2Bx,ou=People,dc=example,dc=org`}) { // as slapd writes it
		t.Errorf("members are %q", got)
	}

	// 24: the same member in another letter case is the same.
	same := w.ldapMembership("same", group, `cn=jane/doe 50%\+x, ou=people, dc=example, dc=org`)
	same.Spec.ManagedResourceSpec = spec("Observe")
	meta.SetExternalName(same, strings.ToUpper(want[:36])+strings.Replace(want[36:], "ou=people", "OU=People", 1))
	w.create(same)
	awaitObject(w.world, same, "found", func(m *ldapv1.Membership) bool {
		return synced(m) && m.Annotations[crossplane.AnnotationBoundName] == want && m.GetCondition(crossplane.TypeDrift).Status == corev1.ConditionFalse
	})
	w.delete(same)
	w.awaitGone(same)

	// 28: the member is a part of the key that may change.
	w.patch(m, `{"spec":{"forProvider":{"member":"uid=john,dc=example,dc=org"}}}`)
	awaitObject(w.world, m, "renamed", func(m *ldapv1.Membership) bool {
		return isBound(m) && meta.GetExternalName(m) == group+"/uid=john,dc=example,dc=org"
	})
	if got := w.members(group); !slices.Equal(got, []string{"uid=john,dc=example,dc=org"}) {
		t.Errorf("members are %q", got)
	}

	// 41: a group that is missing says nothing about its members.
	lost := w.ldapMembership("lost", unknownID, "uid=john,dc=example,dc=org")
	meta.SetExternalName(lost, unknownID+"/uid=john,dc=example,dc=org")
	w.create(lost)
	awaitObject(w.world, lost, "refused", isRefused[*ldapv1.Membership]("parent of the external resource not found"))

	// 25, 26: what can't be a name is refused before a request.
	for reason, member := range map[string]string{"TooLong": "cn=" + strings.Repeat("a", 2048) + ",dc=org", "Rejected": "no DN"} {
		refused := w.ldapMembership(strings.ToLower(reason), group, member)
		w.create(refused)
		awaitObject(w.world, refused, "refused", isRefused[*ldapv1.Membership](reason))
	}
	w.delete(m)
	w.awaitGone(m)
	if got := w.members(group); len(got) != 0 {
		t.Errorf("members are %q", got)
	}
}

// A key that is unique only within a group has the group in it: each import is matched to its own group.
func TestProviderKeyHasItsGroup(t *testing.T) {
	w := newDirectoryWorld(t)
	const jane = "uid=jane,dc=example,dc=org"
	run(w.world, provider.Memberships(w.at), options{})
	for _, cn := range []string{"admins", "users"} {
		group := w.addGroup(cn, jane)
		m := w.ldapMembership(cn, group, jane)
		m.Spec.ManagedResourceSpec = spec("Observe")
		meta.SetExternalName(m, group+"/"+jane)
		w.create(m)
		awaitObject(w.world, m, "found", func(m *ldapv1.Membership) bool { return isBound(m) && m.Status.AtProvider.Group == group })
	}
}

// The identity of a membership can be neither changed nor removed.
func TestProviderIdentityIsImmutable(t *testing.T) {
	w := newDirectoryWorld(t)
	m := w.ldapMembership("m", unknownID, "uid=jane,dc=example,dc=org")
	w.create(m)
	for _, body := range []string{`{"group":"11111111-1111-4111-8111-111111111111"}`, `{"group":null,"groupRef":{"name":"other"}}`} {
		if err := w.client.Patch(t.Context(), m, mergePatch(`{"spec":{"forProvider":`+body+`}}`)); err == nil || !strings.Contains(err.Error(), "group can't change") {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, member := range []*ldapv1.Membership{w.ldapMembership("none", "", "uid=jane,dc=example,dc=org")} {
		if err := w.client.Create(t.Context(), member); err == nil || !strings.Contains(err.Error(), "group or groupRef is required") {
			t.Errorf("no group: %v", err)
		}
	}
}

// Each kind takes less than 50 lines, and mirrors every field of its spec, so that an import can copy them.
func TestProviderKindsAreShort(t *testing.T) {
	for file, function := range map[string]string{"person.go": "Persons", "group.go": "Groups", "membership.go": "Memberships"} {
		source, err := os.ReadFile(filepath.Join("..", "..", "examples", "provider-ldap", "provider", file))
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(source), "\nfunc "+function+"(")
		kind, _, found := strings.Cut(after, "\n}\n")
		if lines := strings.Count(kind, "\n") + 2; !found || lines < 20 || lines >= 50 {
			t.Errorf("%s has %d lines", function, lines)
		}
	}
	for _, mg := range []resource.Managed{&ldapv1.Person{}, &ldapv1.Group{}, &ldapv1.Membership{}} {
		if missing, err := mirror.Missing(mg, "groupRef"); err != nil || len(missing) != 0 {
			t.Errorf("%T: status.atProvider lacks %v: %v", mg, missing, err)
		}
	}
}
