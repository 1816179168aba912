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

// Persons returns the resource for persons. The entryUUID identifies a person. If an earlier release wrote metadata.name as the
// external name, Find looks the person up by the mail, or by the uid.
func Persons(at Directory) crossplane.Resource[*v1.Person, string, *directory.Entry] {
	return crossplane.Resource[*v1.Person, string, *directory.Entry]{
		Kind: v1.GroupVersion.WithKind("Person"),
		Names: externalname.Scheme[string]{
			Codec:  externalname.GUID(),
			Legacy: []externalname.Form[string]{externalname.LegacyObjectName[string]()},
		},
		Connect: func(ctx context.Context, p *v1.Person) (crossplane.External[*v1.Person, string, *directory.Entry], error) {
			d, err := at(ctx, p)
			return crossplane.External[*v1.Person, string, *directory.Entry]{
				Get: func(ctx context.Context, id string) (*directory.Entry, error) { return d.Get(ctx, id) },
				Create: func(ctx context.Context, p *v1.Person) (crossplane.Created[string], error) {
					id, err := d.Add(ctx, personEntry(p.Spec.ForProvider), crossplane.Token(p))
					return crossplane.Created[string]{Key: id}, err
				},
				Update: func(ctx context.Context, p *v1.Person, id string, observed *directory.Entry) (string, error) {
					return id, d.Write(ctx, observed, personEntry(p.Spec.ForProvider))
				},
				Delete: func(ctx context.Context, id string) error { return d.Delete(ctx, id) },
				Mirror: func(p *v1.Person, e *directory.Entry) { p.Status.AtProvider = personOf(e) },
				Diff: func(p *v1.Person, e *directory.Entry) []crossplane.Difference {
					want, have := p.Spec.ForProvider, personOf(e)
					if directory.Same(want.Parent, have.Parent) {
						have.Parent = want.Parent
					}
					return differences(want, have)
				},
				Find: func(ctx context.Context, p *v1.Person) ([]string, error) {
					if mail := p.Spec.ForProvider.Mail; mail != "" && crossplane.Token(p) == "" {
						return d.Find(ctx, "inetOrgPerson", "mail", mail)
					}
					return d.Find(ctx, "inetOrgPerson", "uid", p.Spec.ForProvider.UID)
				},
				Ours: func(_ context.Context, p *v1.Person, e *directory.Entry) (bool, error) {
					return slices.Contains(e.Tokens, crossplane.Token(p)), nil
				},
				List:  func(ctx context.Context) iter.Seq2[string, error] { return d.IDs(ctx, "inetOrgPerson") },
				Close: func(ctx context.Context) error { return d.Close(ctx) },
			}, err
		},
	}
}

// The conversions between the spec and an entry follow. The author of an LDAP client has these functions already.

func personEntry(f v1.PersonParameters) directory.Entry {
	return directory.Entry{DN: directory.Join("uid", f.UID, f.Parent), Attributes: map[string][]string{
		"objectClass": {"inetOrgPerson"},
		"uid":         {f.UID},
		"cn":          {f.CommonName},
		"sn":          {f.Surname},
		"mail":        {f.Mail},
		"title":       {f.Title},
	}}
}

func personOf(e *directory.Entry) v1.PersonParameters {
	return v1.PersonParameters{
		Parent: directory.Parent(e.DN), UID: e.First("uid"), CommonName: e.First("cn"),
		Surname: e.First("sn"), Mail: e.First("mail"), Title: e.First("title"),
	}
}
