package externalname_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	ldap "github.com/godwit-dev/godwit/examples/provider-ldap/directory"
	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/test/slapd"
)

// server is the directory server of all tests; nil where there is none.
var server *slapd.Server

func startServer(ctx context.Context) (err error) {
	server, err = slapd.Start(ctx)
	if errors.Is(err, slapd.ErrMissing) && !slapd.Required() {
		return nil
	}
	return err
}

// needsServer skips a test where there is no directory server.
func needsServer(t *testing.T) {
	t.Helper()
	if server == nil {
		t.Skip(slapd.ErrMissing)
	}
}

// TestSlapd repeats tests on a directory server, by the real names of entries and the real errors of LDAP.
func TestSlapd(t *testing.T) {
	needsServer(t)
	for _, test := range []func(*testing.T){
		TestCreateSetsTheName,    // 1, 2
		TestAlreadyExists,        // 3, 4, 5
		TestMalformedName,        // 6, 7
		TestNotFoundIsDrift,      // 8
		TestObserveOnly,          // 9 to 13
		TestLegacyObjectName,     // 16 to 19, 21
		TestMultipleMatches,      // 20
		TestCompoundKey,          // 23
		TestCompoundKeyCase,      // 24
		TestUpdateChangesTheKey,  // 28
		TestKilledAfterUpdate,    // 29
		TestKilledInsideCreate,   // 30
		TestAnswerLost,           // 31
		TestForeignEntry,         // 32
		TestStaleCache,           // 34
		TestDeleteNotFound,       // 35
		TestEditedName,           // 39
		TestParentNotFound,       // 41
		TestExternalConflict,     // 42
		TestRestoredDuringCreate, // 49
	} {
		t.Run(nameOf(test), test)
	}
}

// nameOf is the name of a test, without its package.
func nameOf(test func(*testing.T)) string {
	name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
	return name[strings.LastIndex(name, ".Test")+len(".Test"):]
}

// onSlapd reports whether a test runs on the directory server.
func onSlapd(t *testing.T) bool { return strings.HasPrefix(t.Name(), "TestSlapd/") }

// ldapStore keeps entries below one entry of the directory server: persons by their uid, and the members of a person below it.
type ldapStore struct{ config ldap.Config }

const class = "inetOrgPerson"

// newBase makes an entry with the name, and returns how a client reaches what is below it.
func newBase(t *testing.T, name string) ldap.Config {
	t.Helper()
	config, err := makeBase(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func makeBase(ctx context.Context, name string) (ldap.Config, error) {
	config := ldap.Config{URL: server.URL(), BaseDN: slapd.Suffix, BindDN: slapd.UserDN, Password: slapd.Password}
	c := ldap.New(config)
	config.BaseDN = ldap.Join("ou", name, slapd.Suffix)
	_, err := c.Add(ctx, ldap.Entry{DN: config.BaseDN, Attributes: map[string][]string{"objectClass": {"organizationalUnit"}, "ou": {name}}}, rand.Text())
	return config, errors.Join(err, c.Close(ctx))
}

func (l ldapStore) client(ctx context.Context) (*ldap.Client, func()) {
	c := ldap.New(l.config)
	return c, func() { _ = c.Close(ctx) }
}

func (l ldapStore) Add(ctx context.Context, e entry) (entry, error) {
	c, closed := l.client(ctx)
	defer closed()
	parent := l.config.BaseDN
	if e.Parent != "" {
		above, err := l.parent(ctx, c, e.Parent)
		if err != nil {
			return entry{}, err
		}
		parent = above.DN
	}
	if e.Mark == "" {
		e.Mark = rand.Text()
	}
	id, err := c.Add(ctx, ldapEntry(e, parent), e.Mark)
	if e.ID = id; e.Parent != "" {
		e.ID = memberID(e)
	}
	return e, err
}

func (l ldapStore) Read(ctx context.Context, id string) (entry, error) {
	c, closed := l.client(ctx)
	defer closed()
	found, err := l.find(ctx, c, id)
	if err != nil {
		return entry{}, err
	}
	return storedEntry(found, parentOf(id)), nil
}

func (l ldapStore) Write(ctx context.Context, id string, e entry) (entry, error) {
	c, closed := l.client(ctx)
	defer closed()
	found, err := l.find(ctx, c, id)
	if err != nil {
		return entry{}, err
	}
	old := storedEntry(found, parentOf(id))
	e.Parent, e.Mark, e.State = old.Parent, old.Mark, old.State
	if e.ID = id; e.Parent != "" {
		e.ID = memberID(e)
	}
	return e, c.Write(ctx, found, ldapEntry(e, ldap.Parent(found.DN)))
}

func (l ldapStore) Remove(ctx context.Context, id string) error {
	c, closed := l.client(ctx)
	defer closed()
	found, err := l.find(ctx, c, id)
	if err != nil {
		return err
	}
	return c.Delete(ctx, found.ID)
}

func (l ldapStore) Search(ctx context.Context, filter entry) ([]entry, error) {
	c, closed := l.client(ctx)
	defer closed()
	attribute, value := "uid", filter.Name
	if value == "" {
		attribute, value = "mail", filter.Mail
	}
	ids, err := c.Find(ctx, class, attribute, value)
	var list []entry
	for _, id := range ids {
		found, err := c.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		list = append(list, storedEntry(found, ""))
	}
	return list, err
}

// find reads the entry of a GUID, or of a parent and a name.
func (l ldapStore) find(ctx context.Context, c *ldap.Client, id string) (*ldap.Entry, error) {
	above, name, member := strings.Cut(id, "/")
	if !member {
		return c.Get(ctx, id)
	}
	parent, err := l.parent(ctx, c, above)
	if err != nil {
		return nil, err
	}
	ids, err := c.Find(ctx, class, "uid", name)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if e, err := c.Get(ctx, id); err != nil || ldap.Same(ldap.Parent(e.DN), parent.DN) {
			return e, err
		}
	}
	return nil, fmt.Errorf("member %q: %w", name, crossplane.ErrNotFound)
}

func (l ldapStore) parent(ctx context.Context, c *ldap.Client, id string) (*ldap.Entry, error) {
	parent, err := c.Get(ctx, id)
	if errors.Is(err, crossplane.ErrNotFound) {
		return nil, fmt.Errorf("entry %s: %w", id, crossplane.ErrParentNotFound)
	}
	return parent, err
}

func parentOf(id string) string {
	parent, _, member := strings.Cut(id, "/")
	if !member {
		return ""
	}
	return parent
}

func ldapEntry(e entry, parent string) ldap.Entry {
	return ldap.Entry{DN: ldap.Join("uid", e.Name, parent), Attributes: map[string][]string{
		"objectClass": {class}, "uid": {e.Name}, "cn": {e.Name}, "sn": {e.Name},
		"mail": {e.Mail}, "title": {e.Title}, "employeeNumber": {e.Secret},
	}}
}

func storedEntry(e *ldap.Entry, parent string) entry {
	stored := entry{ID: e.ID, Parent: parent, Name: e.First("uid"), Mail: e.First("mail"), Title: e.First("title"), Secret: e.First("employeeNumber"), Mark: e.Tokens[0]}
	if parent != "" {
		stored.ID = memberID(stored)
	}
	return stored
}

// all and change are for tests, which know no errors of the directory.
func (l ldapStore) all() []entry {
	ctx := context.Background()
	c, closed := l.client(ctx)
	defer closed()
	var list []entry
	for e, err := range c.List(ctx, class) {
		if err != nil {
			panic(err)
		}
		list = append(list, storedEntry(e, ""))
	}
	return list
}

func (l ldapStore) change(id string, change func(*entry) bool) {
	ctx := context.Background()
	e, err := l.Read(ctx, id)
	if err != nil {
		panic(err)
	}
	if change(&e) {
		_, err = l.Write(ctx, id, e)
	} else {
		err = l.Remove(ctx, id)
	}
	if err != nil {
		panic(err)
	}
}
