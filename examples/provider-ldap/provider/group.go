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

// Groups returns the resource for groups. The entryUUID identifies a group. The members are objects of the kind Membership.
func Groups(at Directory) crossplane.Resource[*v1.Group, string, *directory.Entry] {
	return crossplane.Resource[*v1.Group, string, *directory.Entry]{
		Kind:  v1.GroupVersion.WithKind("Group"),
		Names: externalname.Scheme[string]{Codec: externalname.GUID()},
		Connect: func(ctx context.Context, g *v1.Group) (crossplane.External[*v1.Group, string, *directory.Entry], error) {
			d, err := at(ctx, g)
			return crossplane.External[*v1.Group, string, *directory.Entry]{
				Get: func(ctx context.Context, id string) (*directory.Entry, error) { return d.Get(ctx, id) },
				Create: func(ctx context.Context, g *v1.Group) (crossplane.Created[string], error) {
					e := groupEntry(g.Spec.ForProvider)
					e.Attributes["member"] = []string{""} // The schema requires a member.
					id, err := d.Add(ctx, e, crossplane.Token(g))
					return crossplane.Created[string]{Key: id}, err
				},
				Update: func(ctx context.Context, g *v1.Group, id string, observed *directory.Entry) (string, error) {
					return id, d.Write(ctx, observed, groupEntry(g.Spec.ForProvider))
				},
				Delete: func(ctx context.Context, id string) error { return d.Delete(ctx, id) },
				Mirror: func(g *v1.Group, e *directory.Entry) { g.Status.AtProvider = groupOf(e) },
				Diff: func(g *v1.Group, e *directory.Entry) []crossplane.Difference {
					want, have := g.Spec.ForProvider, groupOf(e)
					if directory.Same(want.Parent, have.Parent) {
						have.Parent = want.Parent
					}
					return differences(want, have)
				},
				Find: func(ctx context.Context, g *v1.Group) ([]string, error) {
					return d.Find(ctx, "groupOfNames", "cn", g.Spec.ForProvider.CommonName)
				},
				Ours: func(_ context.Context, g *v1.Group, e *directory.Entry) (bool, error) {
					return slices.Contains(e.Tokens, crossplane.Token(g)), nil
				},
				List:  func(ctx context.Context) iter.Seq2[string, error] { return d.IDs(ctx, "groupOfNames") },
				Close: func(ctx context.Context) error { return d.Close(ctx) },
			}, err
		},
	}
}

func groupEntry(f v1.GroupParameters) directory.Entry {
	return directory.Entry{DN: directory.Join("cn", f.CommonName, f.Parent), Attributes: map[string][]string{
		"objectClass": {"groupOfNames"},
		"cn":          {f.CommonName},
		"description": {f.Description},
	}}
}

func groupOf(e *directory.Entry) v1.GroupParameters {
	return v1.GroupParameters{Parent: directory.Parent(e.DN), CommonName: e.First("cn"), Description: e.First("description")}
}
