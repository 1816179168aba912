package main

import (
	"fmt"
	"testing"

	"github.com/godwit-dev/godwit/externalname"
)

// codec is one function of a codec.
type codec struct {
	Name        string  `json:"name"`
	Nanoseconds float64 `json:"nanosecondsPerCall"`
	Allocations int64   `json:"allocationsPerCall"`
	Bytes       int64   `json:"bytesPerCall"`
}

// member is a key of three segments, such as a role of a user in a group.
type member struct{ Group, User, Role string }

const group = "0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11"

// measureCodecs measures a GUID, and a key whose segments have rules and an escape.
func measureCodecs() ([]codec, error) {
	members := externalname.Compound(
		externalname.Field("group", func(m *member) *string { return &m.Group }, externalname.IsGUID()),
		externalname.Field("user", func(m *member) *string { return &m.User }),
		externalname.Field("role", func(m *member) *string { return &m.Role }, externalname.Enum("owner", "reader")),
	)
	guids, err := measureCodec("guid", externalname.GUID(), group)
	if err != nil {
		return nil, err
	}
	keys, err := measureCodec("compound", members, member{Group: group, User: "jane/doe@example.org", Role: "reader"})
	return append(guids, keys...), err
}

func measureCodec[K comparable](name string, c externalname.Codec[K], key K) ([]codec, error) {
	text, err := c.Format(key)
	if err != nil {
		return nil, err
	}
	if parsed, err := c.Parse(text); err != nil || parsed != key {
		return nil, fmt.Errorf("%s reads %q as %v: %w", name, text, parsed, err)
	}
	var all []codec
	for _, one := range []struct {
		name string
		call func() error
	}{
		{"format", func() error { _, err := c.Format(key); return err }},
		{"parse", func() error { _, err := c.Parse(text); return err }},
		{"parseLenient", func() error { _, err := c.ParseLenient(text); return err }},
	} {
		r := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := one.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
		if r.N == 0 {
			return nil, fmt.Errorf("%s/%s failed", name, one.name)
		}
		all = append(all, codec{
			Name: name + "/" + one.name, Nanoseconds: float64(r.T.Nanoseconds()) / float64(r.N),
			Allocations: r.AllocsPerOp(), Bytes: r.AllocedBytesPerOp(),
		})
	}
	return all, nil
}
