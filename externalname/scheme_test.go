package externalname_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/externalname"
)

// scheme is that of a kind that once used the object's name, then a name within an
// organization, then the GUID with braces, and the ID of a job while a creation was pending.
var scheme = externalname.Scheme[string]{
	Codec: externalname.GUID(),
	Legacy: []externalname.Form[string]{
		externalname.LegacyKey[string]("Braces", braces{}),
		externalname.LegacyOperation[string]("Job", externalname.Text(externalname.Check("job-…", func(text string) bool { return strings.HasPrefix(text, "job-") }))),
		externalname.LegacyObjectName[string](),
		externalname.LegacyHint[string]("OrgAndName", externalname.Text(externalname.Check("org:…", func(text string) bool { return strings.HasPrefix(text, "org:") }))),
	},
}

// braces is a codec of another program.
type braces struct{}

func (braces) Format(key string) (string, error) { return "{" + key + "}", nil }

func (braces) Parse(name string) (string, error) {
	if !strings.HasPrefix(name, "{") || !strings.HasSuffix(name, "}") {
		return "", &externalname.InvalidError{Reason: externalname.ReasonRejected, Expected: "braces"}
	}
	return strings.Trim(name, "{}"), nil
}

func (b braces) ParseLenient(name string) (string, error) { return b.Parse(name) }

func (braces) Describe() externalname.Shape { return externalname.Shape{} }

func TestSchemeRead(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
		want   externalname.Reading[string]
	}{
		"empty":     {"without a name there is nothing to read", "", externalname.Reading[string]{Class: externalname.Empty}},
		"canonical": {"the codec comes first", guid, externalname.Reading[string]{Class: externalname.Canonical, Key: guid, Name: guid}},
		"lenient":   {"a name is never a legacy form if the codec reads it", strings.ToUpper(guid), externalname.Reading[string]{Class: externalname.Lenient, Key: guid, Name: guid}},
		"key":       {"a legacy key has a canonical name", "{" + guid + "}", externalname.Reading[string]{Class: externalname.Legacy, Form: "Braces", Content: externalname.ContentKey, Key: guid, Name: guid}},
		"operation": {"an operation is no key", "job-7", externalname.Reading[string]{Class: externalname.Legacy, Form: "Job", Content: externalname.ContentOperation, Text: "job-7"}},
		"object":    {"the object's own name is a hint", "my-person", externalname.Reading[string]{Class: externalname.Legacy, Form: "ObjectName", Content: externalname.ContentHint, Text: "my-person"}},
		"hint":      {"a part of a key is a hint", "org:acme", externalname.Reading[string]{Class: externalname.Legacy, Form: "OrgAndName", Content: externalname.ContentHint, Text: "org:acme"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := scheme.Read(tc.name, "my-person")
			if err != nil {
				t.Fatalf("Read(%q): %v: %s", tc.name, err, tc.reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got.HasKey() != (tc.want.Key != "") {
				t.Errorf("HasKey is %v for %+v", got.HasKey(), got)
			}
		})
	}
}

func TestSchemeReadRefuses(t *testing.T) {
	for _, name := range []string{"another-person", "{no-guid}", strings.Repeat("a", 512<<10), "\x80", "{"} {
		_, err := scheme.Read(name, "my-person")
		var invalid *externalname.InvalidError
		if !errors.As(err, &invalid) || invalid.Expected == "" {
			t.Errorf("Read(%.20q) = %v, want what the codec expects", name, err)
		}
	}
}
