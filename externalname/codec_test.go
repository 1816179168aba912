package externalname_test

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname"
)

type stage string

// route has one field of each sort of segment.
type route struct {
	Space  string
	Stage  stage
	Host   string
	Path   string
	Region string
}

const guid = "0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11"

var routes = externalname.Compound(
	externalname.Field("space", func(k *route) *string { return &k.Space }, externalname.IsGUID()),
	externalname.Field("stage", func(k *route) *stage { return &k.Stage }, externalname.Enum("dev", "prod")),
	externalname.Field("host", func(k *route) *string { return &k.Host }, externalname.FoldCase()),
	externalname.Field("path", func(k *route) *string { return &k.Path }, externalname.Mutable()),
	externalname.Field("region", func(k *route) *string { return &k.Region }, externalname.Optional(),
		externalname.Check("a region without digits", func(text string) bool { return !strings.ContainsAny(text, "0123456789") })),
)

func valid(change func(*route)) route {
	key := route{Space: guid, Stage: "dev", Host: "shop.example.com", Path: "cart", Region: "eu"}
	change(&key)
	return key
}

func TestFormat(t *testing.T) {
	cases := map[string]struct {
		reason string
		key    route
		want   string
	}{
		"clean":            {"a clean key is written byte for byte", valid(func(*route) {}), guid + "/dev/shop.example.com/cart/eu"},
		"not escaped":      {"everything else stays as it is", valid(func(k *route) { k.Path = `Ünï cödé ,=+:;?#&"\` }), guid + `/dev/shop.example.com/Ünï cödé ,=+:;?#&"\/eu`},
		"slash":            {"a slash in a segment is no separator", valid(func(k *route) { k.Path = "a/b" }), guid + "/dev/shop.example.com/a%2Fb/eu"},
		"percent":          {"a percent sign begins no escape", valid(func(k *route) { k.Path = "100%2F" }), guid + "/dev/shop.example.com/100%252F/eu"},
		"control":          {"control characters of one byte and of two are escaped", valid(func(k *route) { k.Path = "a\n\x7f\u0085b" }), guid + "/dev/shop.example.com/a%0A%7F%C2%85b/eu"},
		"outer spaces":     {"spaces at either end survive tools that trim, inner ones stay", valid(func(k *route) { k.Path = "  a b \u00a0" }), guid + "/dev/shop.example.com/%20%20a b%20%C2%A0/eu"},
		"folded":           {"a host ignores letter case, a path does not", valid(func(k *route) { k.Host, k.Path = "Shop.EXAMPLE.com", "Cart" }), guid + "/dev/shop.example.com/Cart/eu"},
		"upper-case GUID":  {"an API may answer with an upper-case GUID", valid(func(k *route) { k.Space = strings.ToUpper(guid) }), guid + "/dev/shop.example.com/cart/eu"},
		"without optional": {"the slash of an empty segment stays", valid(func(k *route) { k.Region = "" }), guid + "/dev/shop.example.com/cart/"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := routes.Format(tc.key)
			if err != nil || got != tc.want {
				t.Fatalf("Format = %q, %v, want %q: %s", got, err, tc.want, tc.reason)
			}
			back, err := routes.Parse(got)
			if err != nil {
				t.Fatalf("Parse(%q): %v", got, err)
			}
			want := tc.key
			want.Space, want.Host = strings.ToLower(want.Space), strings.ToLower(want.Host)
			if diff := cmp.Diff(want, back); diff != "" {
				t.Errorf("Parse(Format(key)) differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFormatRefuses(t *testing.T) {
	cases := map[string]struct {
		reason  string
		key     route
		segment string
		want    *godwit.Reason
	}{
		"empty":         {"a required segment must be known", valid(func(k *route) { k.Path = "" }), "path", externalname.ReasonBlank},
		"blank":         {"spaces identify nothing, even escaped", valid(func(k *route) { k.Path = " \t" }), "path", externalname.ReasonBlank},
		"blank option":  {"optional is empty, not blank", valid(func(k *route) { k.Region = " " }), "region", externalname.ReasonBlank},
		"braces":        {"braces are no GUID", valid(func(k *route) { k.Space = "{" + guid + "}" }), "space", externalname.ReasonNotGUID},
		"urn":           {"a URN is no GUID", valid(func(k *route) { k.Space = "urn:uuid:" + guid }), "space", externalname.ReasonNotGUID},
		"hex32":         {"32 digits are a GUID by option only", valid(func(k *route) { k.Space = strings.ReplaceAll(guid, "-", "") }), "space", externalname.ReasonNotGUID},
		"not in enum":   {"values are compared with letter case", valid(func(k *route) { k.Stage = "DEV" }), "stage", externalname.ReasonNotInEnum},
		"check":         {"the provider's own check holds", valid(func(k *route) { k.Region = "eu10" }), "region", externalname.ReasonRejected},
		"parent folder": {"a client would resolve it in a URL", valid(func(k *route) { k.Path = ".." }), "path", externalname.ReasonPathElement},
		"bytes":         {"an annotation is UTF-8", valid(func(k *route) { k.Path = "a\xff" }), "path", externalname.ReasonNotUTF8},
		"long":          {"a name has at most 512 bytes", valid(func(k *route) { k.Path = strings.Repeat("a", 512) }), "", externalname.ReasonTooLong},
		"long escaped":  {"escapes count", valid(func(k *route) { k.Path = strings.Repeat("/", 200) }), "", externalname.ReasonTooLong},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := routes.Format(tc.key)
			checkInvalid(t, err, tc.segment, tc.want)
			if got != "" {
				t.Errorf("Format returned %q beside the error: %s", got, tc.reason)
			}
		})
	}
}

func checkInvalid(t *testing.T, err error, segment string, reason *godwit.Reason) {
	t.Helper()
	var invalid *externalname.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("error is %v, want an InvalidError with reason %s", err, reason)
	}
	if invalid.Segment != segment || invalid.Reason != reason {
		t.Errorf("error is %q of segment %q (%v), want %q of segment %q", invalid.Reason, invalid.Segment, err, reason, segment)
	}
	if invalid.Expected == "" {
		t.Errorf("%v: it does not say what is expected", err)
	}
	if len(err.Error()) > 400 {
		t.Errorf("the error has %d bytes, and ends in a condition", len(err.Error()))
	}
}

// What a user or a hostile client may write into the annotation.
func TestParse(t *testing.T) {
	const clean = guid + "/dev/shop.example.com/cart/eu"
	key := valid(func(*route) {})
	cases := map[string]struct {
		reason  string
		name    string
		strict  *godwit.Reason // nil: accepted
		lenient *godwit.Reason // nil: accepted
		segment string
		want    route
	}{
		"canonical":       {reason: "it is what Format writes", name: clean, want: key},
		"upper-case GUID": {reason: "letter case has no meaning in a GUID", name: strings.ToUpper(guid) + clean[36:], strict: externalname.ReasonNotCanonical, want: key},
		"folded":          {reason: "letter case has no meaning in the host", name: strings.Replace(clean, "shop", "SHOP", 1), strict: externalname.ReasonNotCanonical, want: key},
		"outer spaces":    {reason: "a block scalar of YAML ends with a newline", name: " " + clean + "\n", strict: externalname.ReasonNotCanonical, want: key},
		"spaces":          {reason: "a user aligns segments", name: strings.ReplaceAll(clean, "/", " / "), strict: externalname.ReasonNotCanonical, want: key},
		"needless escape": {reason: "a tool escapes for URLs", name: strings.Replace(clean, "cart", "%63art", 1), strict: externalname.ReasonNotCanonical, want: key},
		"lower-case hex":  {reason: "both cases are hexadecimal", name: strings.Replace(clean, "cart", "a%2fb", 1), strict: externalname.ReasonNotCanonical, want: valid(func(k *route) { k.Path = "a/b" })},
		"no option":       {reason: "a user leaves out the last slash", name: strings.TrimSuffix(clean, "/eu"), strict: externalname.ReasonNotCanonical, want: valid(func(k *route) { k.Region = "" })},

		"empty":            {reason: "it says nothing", strict: externalname.ReasonEmpty, lenient: externalname.ReasonEmpty},
		"only spaces":      {reason: "it says nothing", name: " \n", strict: externalname.ReasonEmpty, lenient: externalname.ReasonEmpty},
		"one segment":      {reason: "the object's name is no key", name: "my-route", strict: externalname.ReasonWrongSegmentCount, lenient: externalname.ReasonWrongSegmentCount},
		"too many":         {reason: "a slash in a segment must be escaped", name: clean + "/x", strict: externalname.ReasonWrongSegmentCount, lenient: externalname.ReasonWrongSegmentCount},
		"open escape":      {reason: "an escape has two digits", name: strings.Replace(clean, "cart", "a%2", 1), strict: externalname.ReasonMalformedEscape, lenient: externalname.ReasonMalformedEscape, segment: "path"},
		"wrong escape":     {reason: "an escape has two digits", name: strings.Replace(clean, "cart", "a%zzb", 1), strict: externalname.ReasonMalformedEscape, lenient: externalname.ReasonMalformedEscape, segment: "path"},
		"escaped bytes":    {reason: "escapes make valid UTF-8", name: strings.Replace(clean, "cart", "a%FF", 1), strict: externalname.ReasonNotUTF8, lenient: externalname.ReasonNotUTF8, segment: "path"},
		"bytes":            {reason: "an annotation is UTF-8", name: clean + "\xff", strict: externalname.ReasonNotUTF8, lenient: externalname.ReasonNotUTF8},
		"continuations":    {reason: "no character begins", name: strings.Repeat("\x80", 300), strict: externalname.ReasonNotUTF8, lenient: externalname.ReasonNotUTF8},
		"control":          {reason: "a user does not see it", name: strings.Replace(clean, "cart", "ca\x00rt", 1), strict: externalname.ReasonControlCharacter, lenient: externalname.ReasonControlCharacter, segment: "path"},
		"terminal escape":  {reason: "it would reach a terminal", name: strings.Replace(clean, "cart", "\x1b[2Jcart", 1), strict: externalname.ReasonControlCharacter, lenient: externalname.ReasonControlCharacter, segment: "path"},
		"escaped blank":    {reason: "spaces identify nothing", name: strings.Replace(clean, "cart", "%20%20", 1), strict: externalname.ReasonBlank, lenient: externalname.ReasonBlank, segment: "path"},
		"parent folder":    {reason: "a client would resolve it in a URL", name: strings.Replace(clean, "cart", "..", 1), strict: externalname.ReasonPathElement, lenient: externalname.ReasonPathElement, segment: "path"},
		"escaped parent":   {reason: "a client would resolve it in a URL", name: strings.Replace(clean, "cart", "%2e%2E", 1), strict: externalname.ReasonPathElement, lenient: externalname.ReasonPathElement, segment: "path"},
		"hidden in a URN":  {reason: "parsers of UUIDs accept it", name: "urn:uuid:" + clean, strict: externalname.ReasonNotGUID, lenient: externalname.ReasonNotGUID, segment: "space"},
		"hidden in braces": {reason: "parsers of UUIDs accept it", name: "{" + guid + "}" + clean[36:], strict: externalname.ReasonNotGUID, lenient: externalname.ReasonNotGUID, segment: "space"},
		"half a megabyte":  {reason: "nothing reads so much", name: strings.Repeat("a/%", 512<<10/3), strict: externalname.ReasonTooLong, lenient: externalname.ReasonTooLong},
		"long when folded": {reason: "the canonical name counts", name: strings.Replace(clean, "cart", strings.Repeat("a", 600), 1), strict: externalname.ReasonTooLong, lenient: externalname.ReasonTooLong},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := routes.Parse(tc.name)
			if tc.strict != nil {
				segment := tc.segment
				if tc.lenient == nil {
					segment = "" // the name as a whole is not canonical
				}
				checkInvalid(t, err, segment, tc.strict)
			} else if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("Parse: %v (%s) (-want +got):\n%s", err, tc.reason, diff)
			}
			got, err = routes.ParseLenient(tc.name)
			if tc.lenient != nil {
				checkInvalid(t, err, tc.segment, tc.lenient)
				if diff := cmp.Diff(route{}, got); diff != "" {
					t.Errorf("ParseLenient returned a key beside the error (-want +got):\n%s", diff)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("ParseLenient: %v (%s) (-want +got):\n%s", err, tc.reason, diff)
			}
		})
	}
}

func TestMaxBytes(t *testing.T) {
	codec := externalname.Text()
	for bytes, ok := range map[int]bool{512: true, 513: false} {
		text := strings.Repeat("a", bytes)
		_, formatErr := codec.Format(text)
		_, parseErr := codec.Parse(text)
		if (formatErr == nil) != ok || (parseErr == nil) != ok {
			t.Errorf("%d bytes: Format %v, Parse %v", bytes, formatErr, parseErr)
		}
	}
	long := codec.MaxBytes(2000)
	if _, err := long.Format(strings.Repeat("a", 2000)); err != nil {
		t.Errorf("Format of 2000 bytes with MaxBytes(2000): %v", err)
	}
	if got := codec.Describe().MaxBytes; got != externalname.DefaultMaxBytes {
		t.Errorf("MaxBytes changed the codec it was called on: %d", got)
	}
}

func TestGUID(t *testing.T) {
	hex := strings.ReplaceAll(guid, "-", "")
	if got, err := externalname.GUID(externalname.Hex32()).Format(strings.ToUpper(hex)); err != nil || got != hex {
		t.Errorf("Format of 32 digits by option = %q, %v", got, err)
	}
	if _, err := externalname.GUID(externalname.Hex32()).ParseLenient(guid); err == nil {
		t.Error("a system that writes 32 digits has no GUID with hyphens")
	}
	codec := externalname.GUID()
	for _, name := range []string{hex, "{" + guid + "}", "urn:uuid:" + guid, guid + "0", guid[:35], guid[:35] + "g", strings.Repeat("-", 36), "00000000-0000-0000-0000-00000000000ß"} {
		_, err := codec.ParseLenient(name)
		checkInvalid(t, err, "guid", externalname.ReasonNotGUID)
	}
}

// Folding must be stable, or the canonical name of a name would differ from it.
func TestLowerCaseIsStable(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		lower := strings.ToLower(string(r))
		if again := strings.ToLower(lower); again != lower {
			t.Errorf("%U becomes %q, and that %q", r, lower, again)
		}
	}
}

func TestDescribe(t *testing.T) {
	shape := routes.Describe()
	if got, want := shape.String(), "<space>/<stage>/<host>/<path>/[<region>]"; got != want {
		t.Errorf("pattern is %s, want %s", got, want)
	}
	want := externalname.Shape{MaxBytes: 512, Segments: []externalname.SegmentShape{
		{Name: "space", Expected: "a GUID such as 0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11", GUID: true, FoldsCase: true},
		{Name: "stage", Expected: "one of dev, prod", Values: []string{"dev", "prod"}},
		{Name: "host", Expected: "text", FoldsCase: true},
		{Name: "path", Expected: "text", Mutable: true},
		{Name: "region", Expected: "a region without digits", Optional: true},
	}}
	if diff := cmp.Diff(want, shape); diff != "" {
		t.Errorf("shape differs (-want +got):\n%s", diff)
	}
	if !shape.Mutable() || externalname.GUID().Describe().Mutable() {
		t.Error("the path of a route may change, a GUID may not")
	}
}

func TestCompoundPanics(t *testing.T) {
	field := func(name string, rules ...externalname.Rule) externalname.Segment[route] {
		return externalname.Field(name, func(k *route) *string { return &k.Path }, rules...)
	}
	cases := map[string][]externalname.Segment[route]{
		"no segment":      {},
		"no name":         {field("")},
		"same name twice": {field("a"), field("a")},
		"all optional":    {field("a", externalname.Optional())},
	}
	for name, segments := range cases {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("Compound made a codec whose names could be empty or whose errors could not be told apart")
				}
			}()
			externalname.Compound(segments...)
		})
	}
}
