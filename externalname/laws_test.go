package externalname_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/godwit-dev/godwit/externalname"
)

// texts are seeds of the fuzz tests, and are all tried in go test.
var texts = []string{
	"", " ", "a", "A", "a b", " a", "a ", "/", "a/b", "%", "%2F", "%252F", "a%", "a%2", "%zz", "\x00", "a\nb", "\u0085", "\u00a0a", "a\u3000",
	"..", ".", "%2e%2e", "../../admin", "a/../b", "\xff", "\x80", "a\xc2", "ß", "İ", "ſ", "K", "ﬀ", "日本/語", "\u202e", "\ufeff", "\u2028a",
	"cn=a,dc=example", "cn=a+sn=b/c,ou=\" x\"", strings.Repeat("a", 512), strings.Repeat("/", 200), guid, strings.ToUpper(guid),
}

// open is a key without restrictions, where collisions would show first.
type open struct{ A, B, C string }

var opens = externalname.Compound(
	externalname.Field("a", func(k *open) *string { return &k.A }),
	externalname.Field("b", func(k *open) *string { return &k.B }, externalname.Optional()),
	externalname.Field("c", func(k *open) *string { return &k.C }, externalname.FoldCase()),
)

func (k open) folded() open { return open{k.A, k.B, strings.ToLower(k.C)} }

// checkKey says that what is written is read, and written as it is read.
func checkKey(t *testing.T, key open) {
	t.Helper()
	name, err := opens.Format(key)
	if err != nil {
		return
	}
	if len(name) > externalname.DefaultMaxBytes || !utf8.ValidString(name) || strings.TrimSpace(name) != name {
		t.Errorf("Format(%q) = %q can't be an annotation", key, name)
	}
	for what, parse := range map[string]func(string) (open, error){"Parse": opens.Parse, "ParseLenient": opens.ParseLenient} {
		if back, err := parse(name); err != nil || back != key.folded() {
			t.Errorf("%s(Format(%q)) = %q, %v", what, key, back, err)
		}
	}
}

// checkName says that a name which is read strictly is canonical, and that the canonical name of
// one which is read leniently identifies the same resource.
func checkName(t *testing.T, name string) {
	t.Helper()
	key, strictErr := opens.Parse(name)
	lenient, lenientErr := opens.ParseLenient(name)
	if strictErr == nil {
		if again, err := opens.Format(key); err != nil || again != name {
			t.Errorf("Format(Parse(%q)) = %q, %v", name, again, err)
		}
		if lenientErr != nil || lenient != key {
			t.Errorf("ParseLenient(%q) = %q, %v, but Parse says %q", name, lenient, lenientErr, key)
		}
	}
	if lenientErr != nil {
		return
	}
	canonical, err := opens.Format(lenient)
	if err != nil {
		t.Fatalf("Format(ParseLenient(%q)): %v", name, err)
	}
	if again, err := opens.Parse(canonical); err != nil || again != lenient {
		t.Errorf("Parse(%q) = %q, %v, want the key of %q, which is %q", canonical, again, err, name, lenient)
	}
	if strictErr != nil && canonical == name {
		t.Errorf("Parse refuses the canonical name %q: %v", name, strictErr)
	}
}

// checkPair says that different keys have different names.
func checkPair(t *testing.T, one, other open) {
	t.Helper()
	first, err := opens.Format(one)
	second, err2 := opens.Format(other)
	if err != nil || err2 != nil {
		return
	}
	if (first == second) != (one.folded() == other.folded()) {
		t.Errorf("keys %q and %q have the names %q and %q", one, other, first, second)
	}
}

// 27: what is written is read, and what is read is written, in each case.
func TestLaws(t *testing.T) {
	named := map[string]open{}
	for i, a := range texts {
		for j, b := range texts {
			key := open{a, b, texts[(i+j)%len(texts)]}
			checkKey(t, key)
			checkName(t, a+"/"+b+"/"+texts[(i*j)%len(texts)])
			name, err := opens.Format(key)
			if err != nil {
				continue
			}
			if other, ok := named[name]; ok && other != key.folded() {
				t.Errorf("keys %q and %q are both named %q", key, other, name)
			}
			named[name] = key.folded()
		}
		checkName(t, a)
	}
	if len(named) < 500 {
		t.Errorf("only %d keys have a name, so that little is shown", len(named))
	}
}

// 27
func FuzzKey(f *testing.F) {
	for i, text := range texts {
		f.Add(text, texts[(i+1)%len(texts)], texts[(i+2)%len(texts)])
	}
	f.Fuzz(func(t *testing.T, a, b, c string) { checkKey(t, open{a, b, c}) })
}

// 27
func FuzzName(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
		f.Add(text + "/" + text + "/" + text)
		f.Add(guid + "/dev/" + text + "/" + text + "/eu")
	}
	f.Fuzz(func(t *testing.T, name string) {
		checkName(t, name)
		for _, codec := range []externalname.Codec[string]{externalname.GUID(), externalname.GUID(externalname.Hex32()), externalname.Text()} {
			if key, err := codec.Parse(name); err == nil {
				if again, err := codec.Format(key); err != nil || again != name {
					t.Errorf("Format(Parse(%q)) = %q, %v", name, again, err)
				}
			}
		}
		if key, err := routes.Parse(name); err == nil {
			if again, err := routes.Format(key); err != nil || again != name {
				t.Errorf("Format(Parse(%q)) = %q, %v", name, again, err)
			}
		}
	})
}

func FuzzInjective(f *testing.F) {
	for i, text := range texts {
		next := texts[(i+1)%len(texts)]
		f.Add(text, next, "x", text+"/"+next, "x", "")
		f.Add(text, next, "x", text, "%"+next, "X")
	}
	f.Fuzz(func(t *testing.T, a, b, c, d, e, g string) { checkPair(t, open{a, b, c}, open{d, e, g}) })
}

func BenchmarkCodec(b *testing.B) {
	key := route{Space: guid, Stage: "dev", Host: "shop.example.com", Path: "cart", Region: "eu"}
	name, err := routes.Format(key)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Format", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = routes.Format(key)
		}
	})
	b.Run("Parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = routes.Parse(name)
		}
	})
}
