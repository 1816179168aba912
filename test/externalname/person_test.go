package externalname_test

import (
	"context"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane"
)

type personResource = crossplane.Resource[*person, string, entry]

// A kind whose key is a GUID that the directory makes.
func persons(d directory) personResource {
	return personResource{
		Kind: groupVersion.WithKind("Person"),
		Names: externalname.Scheme[string]{
			Codec:  externalname.GUID(),
			Legacy: []externalname.Form[string]{externalname.LegacyObjectName[string]()},
		},
		Connect: func(context.Context, *person) (crossplane.External[*person, string, entry], error) {
			return crossplane.External[*person, string, entry]{
				Get: d.Read,
				Create: func(ctx context.Context, p *person) (crossplane.Created[string], error) {
					made, err := d.Add(ctx, entryOf(p))
					return crossplane.Created[string]{Key: made.ID}, err
				},
				Update: func(ctx context.Context, p *person, id string, _ entry) (string, error) {
					_, err := d.Write(ctx, id, entryOf(p))
					return id, err
				},
				Delete: d.Remove,
				Mirror: func(p *person, e entry) {
					p.Status.AtProvider = personParameters{Name: e.Name, Mail: e.Mail, Title: e.Title}
				},
				Diff: func(p *person, e entry) []crossplane.Difference {
					want := p.Spec.ForProvider
					return differences(
						crossplane.Difference{Field: "name", Desired: want.Name, Observed: e.Name},
						crossplane.Difference{Field: "mail", Desired: want.Mail, Observed: e.Mail},
						crossplane.Difference{Field: "title", Desired: want.Title, Observed: e.Title},
						crossplane.Difference{Field: "secret", Desired: want.Secret, Observed: e.Secret, Secret: true},
					)
				},
				Lifecycle: lifecycleOf,
				Find:      func(ctx context.Context, p *person) ([]string, error) { return findPersons(ctx, d, p) },
				Ours: func(_ context.Context, p *person, e entry) (bool, error) {
					return e.Mark == crossplane.Token(p), nil
				},
			}, nil
		},
	}
}

// end of the kind; what follows is what the author's client has anyway.

func entryOf(p *person) entry {
	f := p.Spec.ForProvider
	return entry{Name: f.Name, Mail: f.Mail, Title: f.Title, Secret: f.Secret, Mark: crossplane.Token(p)}
}

func lifecycleOf(e entry) crossplane.Lifecycle {
	if e.State == "" {
		return crossplane.Lifecycle{State: crossplane.Ready}
	}
	return crossplane.Lifecycle{State: e.State}
}

func findPersons(ctx context.Context, d directory, p *person) ([]string, error) {
	filter := entry{Mail: p.Spec.ForProvider.Mail}
	if filter.Mail == "" {
		filter.Name = p.Spec.ForProvider.Name
	}
	found, err := d.Search(ctx, filter)
	var ids []string
	for _, e := range found {
		ids = append(ids, e.ID)
	}
	return ids, err
}

func differences(all ...crossplane.Difference) []crossplane.Difference {
	var left []crossplane.Difference
	for _, d := range all {
		if d.Desired != d.Observed {
			left = append(left, d)
		}
	}
	return left
}

// member is the key of a membership.
type member struct{ Group, Member string }

type membershipResource = crossplane.Resource[*membership, member, entry]

var memberNames = externalname.Compound(
	externalname.Field("group", func(k *member) *string { return &k.Group }, externalname.IsGUID()),
	externalname.Field("member", func(k *member) *string { return &k.Member }, externalname.FoldCase(), externalname.Mutable()),
)

// A kind whose key is compound and can change.
func memberships(d directory) membershipResource {
	id := func(k member) string { return memberID(entry{Parent: k.Group, Name: k.Member}) }
	toEntry := func(m *membership) entry {
		f := m.Spec.ForProvider
		return entry{Parent: f.Group, Name: f.Member, Title: f.Title, Mark: crossplane.Token(m)}
	}
	return membershipResource{
		Kind:  groupVersion.WithKind("Membership"),
		Names: externalname.Scheme[member]{Codec: memberNames},
		KeyFromSpec: func(m *membership) member {
			return member{Group: m.Spec.ForProvider.Group, Member: m.Spec.ForProvider.Member}
		},
		Connect: func(context.Context, *membership) (crossplane.External[*membership, member, entry], error) {
			return crossplane.External[*membership, member, entry]{
				Get: func(ctx context.Context, k member) (entry, error) { return d.Read(ctx, id(k)) },
				Create: func(ctx context.Context, m *membership) (crossplane.Created[member], error) {
					made, err := d.Add(ctx, toEntry(m))
					return crossplane.Created[member]{Key: member{made.Parent, made.Name}}, err
				},
				Update: func(ctx context.Context, m *membership, k member, _ entry) (member, error) {
					written, err := d.Write(ctx, id(k), toEntry(m))
					return member{written.Parent, written.Name}, err
				},
				Delete: func(ctx context.Context, k member) error { return d.Remove(ctx, id(k)) },
				Mirror: func(m *membership, e entry) {
					m.Status.AtProvider = membershipParameters{Group: e.Parent, Member: e.Name, Title: e.Title}
				},
				Diff: func(m *membership, e entry) []crossplane.Difference {
					want := m.Spec.ForProvider
					return differences(
						crossplane.Difference{Field: "member", Desired: want.Member, Observed: e.Name},
						crossplane.Difference{Field: "title", Desired: want.Title, Observed: e.Title},
					)
				},
				Lifecycle: lifecycleOf,
				Ours: func(_ context.Context, m *membership, e entry) (bool, error) {
					return e.Mark == crossplane.Token(m), nil
				},
			}, nil
		},
	}
}
