package externalname_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/externalname"
)

type site struct{ Stage, ID, Zone, Note string }

// patterned are schemes with each rule that a pattern knows.
var patterned = map[string]externalname.Scheme[site]{
	"all rules": {
		Codec: externalname.Compound(
			externalname.Field("stage", func(k *site) *string { return &k.Stage }, externalname.Enum("dev", "Prod/ı", "5%"), externalname.FoldCase()),
			externalname.Field("id", func(k *site) *string { return &k.ID }, externalname.IsGUID()),
			externalname.Field("zone", func(k *site) *string { return &k.Zone }, externalname.Optional()),
			externalname.Field("note", func(k *site) *string { return &k.Note }, externalname.Optional(), externalname.Enum("x", "Iis")),
		),
		Legacy: []externalname.Form[site]{
			externalname.LegacyObjectName[site](),
			externalname.LegacyHint[site]("Hex", externalname.GUID(externalname.Hex32())),
		},
	},
	"text": {Codec: externalname.Compound(externalname.Field("zone", func(k *site) *string { return &k.Zone })).MaxBytes(40)},
	"optional first": {Codec: externalname.Compound(
		externalname.Field("zone", func(k *site) *string { return &k.Zone }, externalname.Optional()),
		externalname.Field("note", func(k *site) *string { return &k.Note }),
	)},
}

func matches(t *testing.T, p externalname.Pattern, name string) bool {
	t.Helper()
	trimmed := strings.TrimSpace(name)
	return len(trimmed) <= p.MaxBytes && regexp.MustCompile(p.Regexp).MatchString(trimmed) || p.ObjectName && name == "object"
}

// checkPattern says that what a scheme reads is within its pattern.
func checkPattern(t *testing.T, name string) {
	t.Helper()
	for reason, scheme := range patterned {
		p, err := scheme.Pattern()
		if err != nil {
			t.Fatal(err)
		}
		reading, err := scheme.Read(name, "object")
		if err == nil && reading.Class != externalname.Empty && !matches(t, p, name) {
			t.Errorf("%s: %q is read as %+v, and is not within %s", reason, name, reading, p.Regexp)
		}
	}
}

// Each name that a scheme reads is within its pattern, also if a user has written it in another way than the codec.
func TestPatternMatchesWhatIsRead(t *testing.T) {
	const id = "0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11"
	for _, name := range append([]string{
		"dev/" + id, " DEV / " + strings.ToUpper(id) + " ", "%44ev/" + id, "prod%2fı/" + id, "PROD%2F%C4%b1/" + id, "5%25/" + id,
		"dev/%30b4b3a1c%2D6a5d-4f0e-8d2c-9d8f2f8d1%4111/", "dev/" + id + "/eu/x", "dev/" + id + "//x", "dev/" + id + "/ /", "dev/" + id + "/\u00a0a b/%78",
		strings.ReplaceAll(id, "-", ""), "object", "/a", " /a", "b/a", "a\u2028b", "\u3000a",
	}, texts...) {
		checkPattern(t, name)
		for _, other := range texts {
			checkPattern(t, name+"/"+other)
			checkPattern(t, other+name)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, name string) {
		checkPattern(t, name)
		checkPattern(t, "dev/0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11/"+name)
		checkPattern(t, name+"/0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11")
	})
}

// What no codec would read is not within the pattern.
func TestPatternRefuses(t *testing.T) {
	const id = "0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11"
	p, err := patterned["all rules"].Pattern()
	if err != nil {
		t.Fatal(err)
	}
	for reason, name := range map[string]string{
		"another value": "test/" + id, "no GUID": "dev/x", "braces": "dev/{" + id + "}", "URN": "dev/urn:uuid:" + id, "a digit too many": "dev/" + id + "0",
		"one segment": "dev", "five segments": "dev/" + id + "/a/x/y", "a malformed escape": "dev/" + id + "/%zz", "a control character": "dev/" + id + "/a\tb",
		"blank": "  ", "an empty segment": "/" + id, "too long": "dev/" + id + "/" + strings.Repeat("a", 2000), "another object": "objects",
	} {
		if matches(t, p, name) {
			t.Errorf("%s: %q is within the pattern", reason, name)
		}
	}
	if want := "<stage>/<id>/[<zone>]/[<note>], where stage is one of dev, prod/ı, 5%, id is a GUID such as " + id + ", zone is text, note is one of x, Iis"; p.Expected != want {
		t.Errorf("expected is %q, want %q", p.Expected, want)
	}
}

// ownCodec hides that it is a codec of the package.
type ownCodec struct{ externalname.Codec[string] }

// A codec of the author's own has no pattern: what it reads is not known.
func TestPatternOfOwnCodec(t *testing.T) {
	own := ownCodec{externalname.Text()}
	for reason, scheme := range map[string]externalname.Scheme[string]{
		"the codec":     {Codec: own},
		"a legacy form": {Codec: externalname.Text(), Legacy: []externalname.Form[string]{externalname.LegacyKey[string]("Old", own)}},
	} {
		if p, err := scheme.Pattern(); err == nil {
			t.Errorf("%s: %+v", reason, p)
		}
	}
}
