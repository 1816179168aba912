package record

import (
	"context"
	"strconv"

	v1 "example.com/provider-records/api/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// Key identifies a record.
type Key struct{ Zone, Name string }

// Names are external names of the form ZONE/NAME.
var Names = externalname.Scheme[Key]{Codec: externalname.Compound(
	externalname.Field("zone", func(k *Key) *string { return &k.Zone }, externalname.FoldCase(), externalname.Check("a DNS name", isDNS)),
	externalname.Field("name", func(k *Key) *string { return &k.Name }, externalname.FoldCase(), externalname.Check("a DNS name", isDNS)),
)}

func isDNS(text string) bool { return len(validation.IsDNS1123Subdomain(text)) == 0 }

// Resource returns the resource for records.
func Resource(c Client) crossplane.Resource[*v1.Record, Key, Entry] {
	return crossplane.Resource[*v1.Record, Key, Entry]{
		Kind:        v1.GroupVersion.WithKind("Record"),
		Names:       Names,
		KeyFromSpec: keyOf,
		Connect: func(context.Context, *v1.Record) (crossplane.External[*v1.Record, Key, Entry], error) {
			return crossplane.External[*v1.Record, Key, Entry]{
				Get: c.get,
				Create: func(ctx context.Context, r *v1.Record) (crossplane.Created[Key], error) {
					e := entryOf(r)
					e.Comment = crossplane.Token(r)
					return crossplane.Created[Key]{Key: keyOf(r)}, c.create(ctx, keyOf(r), e)
				},
				Ours: func(_ context.Context, r *v1.Record, e Entry) (bool, error) {
					return e.Comment == crossplane.Token(r), nil
				},
				Update: func(ctx context.Context, r *v1.Record, k Key, observed Entry) (Key, error) {
					e := entryOf(r)
					e.Comment = observed.Comment
					return k, c.update(ctx, k, e)
				},
				Delete: c.delete,
				Mirror: func(r *v1.Record, e Entry) {
					r.Status.AtProvider.Value, r.Status.AtProvider.TTL = e.Value, e.TTL
				},
				MirrorKey: func(r *v1.Record, k Key) {
					r.Status.AtProvider.Zone, r.Status.AtProvider.Name = k.Zone, k.Name
				},
				Diff: func(r *v1.Record, e Entry) (list []crossplane.Difference) {
					want := entryOf(r)
					if want.Value != e.Value {
						list = append(list, crossplane.Difference{Field: "value", Desired: want.Value, Observed: e.Value})
					}
					if want.TTL != e.TTL {
						list = append(list, crossplane.Difference{Field: "ttl", Desired: strconv.FormatInt(want.TTL, 10), Observed: strconv.FormatInt(e.TTL, 10)})
					}
					return list
				},
			}, nil
		},
	}
}

func keyOf(r *v1.Record) Key {
	return Key{Zone: r.Spec.ForProvider.Zone, Name: r.Spec.ForProvider.Name}
}

func entryOf(r *v1.Record) Entry {
	return Entry{Value: r.Spec.ForProvider.Value, TTL: r.Spec.ForProvider.TTL}
}
