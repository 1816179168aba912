package provider

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/godwit-dev/godwit/examples/provider-ldap/api/v1"
	"github.com/godwit-dev/godwit/examples/provider-ldap/directory"
	"github.com/godwit-dev/godwit/externalname/crossplane/export"
)

// Exports returns the kinds to export, for a ProviderConfig. Groups come before the memberships that refer to them.
func Exports(at Directory, config types.NamespacedName) []export.Kind {
	spec := xpv2.ManagedResourceSpec{ProviderConfigReference: &xpv2.ProviderConfigReference{Kind: "ProviderConfig", Name: config.Name}}
	return []export.Kind{
		export.Of(Persons(at), export.Options[*v1.Person, *directory.Entry]{
			New: func() *v1.Person {
				p := &v1.Person{Spec: v1.PersonSpec{ManagedResourceSpec: *spec.DeepCopy()}}
				p.Namespace = config.Namespace
				return p
			},
			Fill: func(p *v1.Person, e *directory.Entry) { p.Spec.ForProvider = personOf(e) },
			Name: func(e *directory.Entry) string { return e.First("uid") },
		}),
		export.Of(Groups(at), export.Options[*v1.Group, *directory.Entry]{
			New: func() *v1.Group {
				g := &v1.Group{Spec: v1.GroupSpec{ManagedResourceSpec: *spec.DeepCopy()}}
				g.Namespace = config.Namespace
				return g
			},
			Fill: func(g *v1.Group, e *directory.Entry) { g.Spec.ForProvider = groupOf(e) },
			Name: func(e *directory.Entry) string { return e.First("cn") },
		}),
		export.Of(Memberships(at), export.Options[*v1.Membership, directory.Member]{
			New: func() *v1.Membership {
				m := &v1.Membership{Spec: v1.MembershipSpec{ManagedResourceSpec: *spec.DeepCopy()}}
				m.Namespace = config.Namespace
				return m
			},
			Fill: func(m *v1.Membership, o directory.Member) {
				m.Spec.ForProvider = v1.MembershipParameters{Group: o.Group.ID, Member: o.DN}
			},
			Name: func(o directory.Member) string { return o.Group.First("cn") + "-" + directory.Name(o.DN) },
			Refer: func(m *v1.Membership, exported export.Lookup) {
				f := &m.Spec.ForProvider
				if group, ok := exported(v1.GroupVersion.WithKind("Group").GroupKind(), f.Group); ok {
					f.Group, f.GroupRef = "", &xpv2.NamespacedReference{Name: group}
				}
			},
		}),
	}
}
