package externalname_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/externalname"
)

type bucket struct{ Region, Name string }

func bucketKind() externalname.UpjetKind[bucket] {
	return externalname.UpjetKind[bucket]{
		Names: externalname.Scheme[bucket]{
			Codec: externalname.Compound(
				externalname.Field("region", func(k *bucket) *string { return &k.Region }, externalname.Enum("eu", "us")),
				externalname.Field("name", func(k *bucket) *string { return &k.Name }),
			),
			Legacy: []externalname.Form[bucket]{
				externalname.LegacyKey("Reversed", externalname.Compound(
					externalname.Field("name", func(k *bucket) *string { return &k.Name }),
					externalname.Field("region", func(k *bucket) *string { return &k.Region }, externalname.Enum("eu", "us")),
				)),
				externalname.LegacyHint[bucket]("NameOnly", externalname.Text()),
			},
		},
		KeyOf: func(state map[string]any) (bucket, error) {
			region, ok := state["region"].(string)
			if !ok {
				return bucket{}, errors.New("no region")
			}
			return bucket{region, fmt.Sprint(state["bucket"])}, nil
		},
		IDOf: func(k bucket) (string, error) { return k.Region + ":" + k.Name, nil },
		KeyOfHint: func(hint string, parameters, _ map[string]any) (bucket, error) {
			region, ok := parameters["region"].(string)
			if !ok {
				return bucket{}, errors.New("no region")
			}
			return bucket{region, hint}, nil
		},
		KeyInParameters: true,
	}
}

func TestForUpjetName(t *testing.T) {
	name, _ := externalname.ForUpjet(bucketKind())
	if got, err := name(map[string]any{"region": "eu", "bucket": "a/b"}); err != nil || got != "eu/a%2Fb" {
		t.Errorf("name is %q, %v", got, err)
	}
	for reason, state := range map[string]map[string]any{
		"a state without a key":             {},
		"a state whose key can't be a name": {"region": "mars", "bucket": "a"},
	} {
		if got, err := name(state); err == nil {
			t.Errorf("%s made the name %q", reason, got)
		}
	}
}

func TestForUpjetID(t *testing.T) {
	europe := map[string]any{"region": "eu", "bucket": "a"}
	cases := map[string]struct {
		name       string
		parameters map[string]any
		want       string
		refused    string
	}{
		"a new resource has no name, and gets no ID":   {"", europe, "", ""},
		"Terraform reports a missing parameter":        {"", nil, "", ""},
		"a key that can't be a name is not created":    {"", map[string]any{"region": "mars", "bucket": "a"}, "", "one of eu, us"},
		"the canonical form":                           {"eu/a%2Fb", europe, "eu:a/b", ""},
		"a lenient form":                               {" eu/a ", europe, "eu:a", ""},
		"a legacy key":                                 {"a/us", europe, "us:a", ""},
		"a legacy hint is completed by the parameters": {"a", europe, "eu:a", ""},
		"a hint that the parameters do not complete":   {"a", nil, "", "no region"},
		"a hint that completes to no name":             {"a", map[string]any{"region": "mars"}, "", "one of eu, us"},
		"a malformed name":                             {"eu/a/b", europe, "", "<region>/<name>"},
	}
	_, id := externalname.ForUpjet(bucketKind())
	for reason, tc := range cases {
		got, err := id(t.Context(), tc.name, tc.parameters, nil)
		if got != tc.want || (err != nil) != (tc.refused != "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("%s: ID %q, error %v, want %q, error %q", reason, got, err, tc.want, tc.refused)
		}
	}
}

func TestForUpjetWithoutHelp(t *testing.T) {
	kind := bucketKind()
	kind.KeyOfHint, kind.KeyInParameters = nil, false
	_, id := externalname.ForUpjet(kind)
	if got, err := id(t.Context(), "a", map[string]any{"region": "eu"}, nil); err == nil || !strings.Contains(err.Error(), "NameOnly") {
		t.Errorf("a hint without KeyOfHint made ID %q, error %v", got, err)
	}
	if got, err := id(t.Context(), "", map[string]any{"region": "mars"}, nil); got != "" || err != nil {
		t.Errorf("parameters that have no key made ID %q, error %v", got, err)
	}
}
