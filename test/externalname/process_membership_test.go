package externalname_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	ldapv1 "github.com/godwit-dev/godwit/examples/provider-ldap/api/v1"
	ldap "github.com/godwit-dev/godwit/examples/provider-ldap/directory"
	"github.com/godwit-dev/godwit/examples/provider-ldap/provider"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance"
	"github.com/godwit-dev/godwit/test/slapd"
)

// noOtherField is why checks that change a membership do not apply.
const noOtherField = "a membership has no field but its key"

// The memberships of examples/provider-ldap, whose key is compound and can change, are proven as a process as well.
func TestProcessLDAPMembership(t *testing.T) {
	needsConformance(t)
	needsServer(t)
	binary := program(t, "../../examples/provider-ldap", ".")
	team := newTeam(t)
	kind := conformance.Kind{
		Manifest: func(_, id string) *unstructured.Unstructured {
			o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"providerConfigRef": map[string]any{"kind": "ProviderConfig", "name": "default"},
				"forProvider":       map[string]any{"group": team.id, "member": ldap.Join("cn", id, slapd.Suffix)},
			}}}
			o.SetGroupVersionKind(ldapv1.GroupVersion.WithKind("Membership"))
			return o
		},
		Shape:   provider.MembershipNames.Describe(),
		Unknown: team.id + "/" + ldap.Join("cn", "missing", slapd.Suffix),
		Rename:  `{"spec":{"forProvider":{"member":"cn=renamed,dc=example,dc=org"}}}`,
		HardKeys: []string{
			`{"spec":{"forProvider":{"member":"cn=jane/doe,dc=example,dc=org"}}}`,
			`{"spec":{"forProvider":{"member":"cn=50% +sn=x\\2C y,dc=example,dc=org"}}}`,
			`{"spec":{"forProvider":{"member":".."}}}`,
		},
		Exempt: map[conformance.CheckName]string{
			conformance.SeveralMatchesAreRefused: "a membership is never looked up by its spec",
			conformance.ObserveOnlyWritesNothing: noOtherField,
			conformance.DiffIsReported:           noOtherField,
			conformance.StatusSurvives:           noOtherField,
			conformance.UpdateIsApplied:          noOtherField,
			conformance.DeleteOnce:               "the directory deletes at once, and has no state of being deleted",
		},
	}
	report := conformance.Run(t, kind, conformance.Harness{
		Config: shared.Config(),
		Open: func(ctx context.Context, namespace string) (conformance.System, conformance.Provider, error) {
			return team.open(ctx, t, binary, namespace)
		},
		Poll:     processPoll,
		Recovery: 50 * time.Second, // The recovery delay of a kind is 30 s by default.
		Timeout:  2 * time.Minute,
	})
	undecided := map[conformance.CheckName]conformance.State{}
	for check := range kind.Exempt {
		undecided[check] = conformance.DoesNotApply
	}
	checkUndecided(t, report, undecided)
}

// team is a group whose members the checks manage, one check at a time.
type team struct {
	config ldap.Config
	id, dn string
}

func newTeam(t *testing.T) team {
	t.Helper()
	config, err := makeBase(t.Context(), "memberships")
	if err != nil {
		t.Fatal(err)
	}
	g := team{config: config, dn: ldap.Join("cn", "team", config.BaseDN)}
	err = g.with(t.Context(), func(c *ldap.Client) error {
		g.id, err = c.Add(t.Context(), ldap.Entry{DN: g.dn, Attributes: map[string][]string{
			"objectClass": {"groupOfNames"}, "cn": {"team"}, "member": {""}, // The schema requires a member.
		}}, rand.Text())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// open empties the group for one check.
func (g team) open(ctx context.Context, t *testing.T, binary, namespace string) (conformance.System, conformance.Provider, error) {
	t.Helper()
	err := g.eachMember(ctx, func(c *ldap.Client, m ldap.Member) error {
		live, err := c.Member(ctx, g.id, m.DN) // The member before it has changed the tokens of the group.
		return errors.Join(err, c.ReplaceMember(ctx, live, ""))
	})
	if err != nil {
		return conformance.System{}, conformance.Provider{}, err
	}
	wire, err := newLDAPWire(t, server.Address(), memberOperation)
	if err != nil {
		return conformance.System{}, conformance.Provider{}, err
	}
	system := g.system()
	system.OnCall = wire.OnCall
	started, err := ldapProvider(ctx, wire, g.config, binary, namespace)
	return system, started, err
}

// system acts as another client of the directory.
func (g team) system() conformance.System {
	return conformance.System{
		Add: func(ctx context.Context, mg *unstructured.Unstructured) (string, error) {
			dn, _, err := unstructured.NestedString(mg.Object, "spec", "forProvider", "member")
			if err != nil {
				return "", err
			}
			if err := g.with(ctx, func(c *ldap.Client) error { return c.AddMember(ctx, g.id, dn, rand.Text()) }); err != nil {
				return "", err
			}
			return g.name(dn)
		},
		List: func(ctx context.Context) (names []string, err error) {
			err = g.eachMember(ctx, func(_ *ldap.Client, m ldap.Member) error {
				name, err := g.name(m.DN)
				names = append(names, name)
				return err
			})
			return names, err
		},
		Remove: func(ctx context.Context, name string) error {
			key, err := provider.MembershipNames.Parse(name)
			if err != nil {
				return err
			}
			return g.with(ctx, func(c *ldap.Client) error {
				m, err := c.Member(ctx, g.id, key.Member)
				if err != nil {
					return err
				}
				return c.ReplaceMember(ctx, m, "")
			})
		},
		HideParent: func(ctx context.Context, _ string) (func(context.Context) error, error) {
			return func(ctx context.Context) error { return g.move(ctx, g.config.BaseDN) }, g.move(ctx, slapd.Suffix)
		},
	}
}

func (g team) name(dn string) (string, error) {
	return provider.MembershipNames.Format(provider.MembershipKey{Group: g.id, Member: ldap.Normalize(dn)})
}

// move puts the group elsewhere. It keeps its entryUUID, and the provider looks below its base only.
func (g team) move(ctx context.Context, parent string) error {
	all := g
	all.config.BaseDN = slapd.Suffix
	return all.with(ctx, func(c *ldap.Client) error {
		e, err := c.Get(ctx, g.id)
		if err != nil {
			return err
		}
		return c.Write(ctx, e, ldap.Entry{DN: ldap.Join("cn", "team", parent)})
	})
}

func (g team) eachMember(ctx context.Context, do func(*ldap.Client, ldap.Member) error) error {
	return g.with(ctx, func(c *ldap.Client) error {
		e, err := c.Get(ctx, g.id)
		if err != nil {
			return err
		}
		for _, m := range e.Members() {
			if err := do(c, m); err != nil {
				return err
			}
		}
		return nil
	})
}

func (g team) with(ctx context.Context, use func(*ldap.Client) error) error {
	c := ldap.New(g.config)
	return errors.Join(use(c), c.Close(ctx))
}
