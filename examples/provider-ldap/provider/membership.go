package provider

import (
	"context"
	"iter"
	"slices"

	v1 "github.com/godwit-dev/godwit/examples/provider-ldap/api/v1"
	"github.com/godwit-dev/godwit/examples/provider-ldap/directory"
	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// MembershipKey identifies a membership: the entryUUID of the group, and the DN of the member.
type MembershipKey struct{ Group, Member string }

// longestName is longer than the default, because DNs can be long.
const longestName = 2048

// MembershipNames reads and writes external names of the form GROUP/MEMBER. The member of a Membership may change, its group
// may not.
var MembershipNames = externalname.Compound(
	externalname.Field("group", func(k *MembershipKey) *string { return &k.Group }, externalname.IsGUID()),
	externalname.Field("member", func(k *MembershipKey) *string { return &k.Member },
		externalname.FoldCase(), externalname.Mutable(), externalname.Check("a DN", directory.IsDN)),
).MaxBytes(longestName)

// Memberships returns the resource for memberships. The group and the member identify a membership.
func Memberships(at Directory) crossplane.Resource[*v1.Membership, MembershipKey, directory.Member] {
	return crossplane.Resource[*v1.Membership, MembershipKey, directory.Member]{
		Kind:        v1.GroupVersion.WithKind("Membership"),
		Names:       externalname.Scheme[MembershipKey]{Codec: MembershipNames},
		KeyFromSpec: func(m *v1.Membership) MembershipKey { return keyOf(m.Spec.ForProvider) },
		Connect: func(ctx context.Context, m *v1.Membership) (crossplane.External[*v1.Membership, MembershipKey, directory.Member], error) {
			d, err := at(ctx, m)
			return crossplane.External[*v1.Membership, MembershipKey, directory.Member]{
				Get: func(ctx context.Context, k MembershipKey) (directory.Member, error) {
					return d.Member(ctx, k.Group, k.Member)
				},
				Create: func(ctx context.Context, m *v1.Membership) (crossplane.Created[MembershipKey], error) {
					f := m.Spec.ForProvider
					return crossplane.Created[MembershipKey]{Key: keyOf(f)}, d.AddMember(ctx, f.Group, f.Member, crossplane.Token(m))
				},
				Update: func(ctx context.Context, m *v1.Membership, _ MembershipKey, observed directory.Member) (MembershipKey, error) {
					return keyOf(m.Spec.ForProvider), d.ReplaceMember(ctx, observed, m.Spec.ForProvider.Member)
				},
				Delete: func(ctx context.Context, k MembershipKey) error {
					observed, err := d.Member(ctx, k.Group, k.Member)
					if err != nil {
						return err
					}
					return d.ReplaceMember(ctx, observed, "")
				},
				Mirror: func(m *v1.Membership, o directory.Member) {
					m.Status.AtProvider = v1.MembershipObservation{Group: o.Group.ID, Member: o.DN}
				},
				Diff: func(m *v1.Membership, o directory.Member) []crossplane.Difference {
					desired := v1.MembershipObservation{Group: m.Spec.ForProvider.Group, Member: directory.Normalize(m.Spec.ForProvider.Member)}
					return differences(desired, v1.MembershipObservation{Group: o.Group.ID, Member: directory.Normalize(o.DN)})
				},
				Ours: func(_ context.Context, m *v1.Membership, o directory.Member) (bool, error) {
					return slices.Contains(o.Tokens, crossplane.Token(m)), nil
				},
				List:  func(ctx context.Context) iter.Seq2[MembershipKey, error] { return memberships(ctx, d) },
				Close: func(ctx context.Context) error { return d.Close(ctx) },
			}, err
		},
	}
}

func keyOf(f v1.MembershipParameters) MembershipKey {
	return MembershipKey{Group: f.Group, Member: directory.Normalize(f.Member)}
}

func memberships(ctx context.Context, d *directory.Client) iter.Seq2[MembershipKey, error] {
	return func(yield func(MembershipKey, error) bool) {
		for group, err := range d.List(ctx, "groupOfNames") {
			if err != nil {
				yield(MembershipKey{}, err)
				return
			}
			for _, m := range group.Members() {
				if !yield(MembershipKey{Group: group.ID, Member: directory.Normalize(m.DN)}, nil) {
					return
				}
			}
		}
	}
}
