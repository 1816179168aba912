package externalname_test

import (
	"context"

	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/test/externalname/kinds"
)

type hybridKey = kinds.HybridKey

// hybridConnect is the client of a kind whose key has a part that is known from its status only.
func hybridConnect(d directory) func(context.Context, *person) (crossplane.External[*person, hybridKey, entry], error) {
	return func(context.Context, *person) (crossplane.External[*person, hybridKey, entry], error) {
		return crossplane.External[*person, hybridKey, entry]{
			Get: func(ctx context.Context, k hybridKey) (entry, error) { return d.Read(ctx, k.ID) },
			Create: func(ctx context.Context, p *person) (crossplane.Created[hybridKey], error) {
				made, err := d.Add(ctx, entryOf(p))
				return crossplane.Created[hybridKey]{Key: hybridKey{ID: made.ID}}, err
			},
			Update: func(ctx context.Context, p *person, k hybridKey, _ entry) (hybridKey, error) {
				_, err := d.Write(ctx, k.ID, entryOf(p))
				return k, err
			},
			Delete: func(ctx context.Context, k hybridKey) error { return d.Remove(ctx, k.ID) },
			Mirror: func(p *person, e entry) {
				p.Status.AtProvider = personParameters{Name: e.Name, Mail: e.Mail, Secret: e.ID}
			},
			Diff: func(*person, entry) []crossplane.Difference { return nil },
		}, nil
	}
}
