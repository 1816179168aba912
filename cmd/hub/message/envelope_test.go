package message

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// keys of a test: those of the manager, of the source and of the target, and of a hub that is
// none of them.
type keys struct {
	manager, source, stranger Identity
	target, other             OpeningKey
}

func newKeys(tb testing.TB) keys {
	tb.Helper()
	var k keys
	var err error
	for _, i := range []*Identity{&k.manager, &k.source, &k.stranger} {
		if *i, err = NewIdentity(); err != nil {
			tb.Fatal(err)
		}
	}
	for _, o := range []*OpeningKey{&k.target, &k.other} {
		if *o, err = NewOpeningKey(); err != nil {
			tb.Fatal(err)
		}
	}
	return k
}

func header(kind Type) Header {
	return Header{
		Version: Version, Type: kind, Migration: "6d4e", From: "hub1", To: "hub2", Stage: api.PhaseDeploying, Attempt: 10, Batch: 3,
		ValidFor: 90 * time.Second, TotalClusters: 300,
	}
}

func write(tb testing.TB, h Header, data string, from Identity, to *SealingKey) Envelope {
	tb.Helper()
	e, err := Write(h, []byte(data), from, to)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// TestEnvelope: what is written is read, and the broker sees the header alone.
func TestEnvelope(t *testing.T) {
	k := newKeys(t)
	public := k.target.Key()
	for name, to := range map[string]*SealingKey{"sealed": &public, "signed": nil} {
		t.Run(name, func(t *testing.T) {
			kind := TypeResource
			if to == nil {
				kind = TypeTarget
			}
			e := write(t, header(kind), "the secret", k.source, to)
			h, data, err := Read(e, "hub2", k.source.Key(), &k.target)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(header(kind), h); diff != "" || string(data) != "the secret" {
				t.Errorf("read %q and header (-want +got):\n%s", data, diff)
			}
			if seen := bytes.Contains(e.Value, []byte("secret")); seen != (to == nil) {
				t.Errorf("the broker sees the data: %t", seen)
			}
			if e.Attributes["ce_totalclusters"] != "300" || e.Attributes["ce_migrationid"] != "6d4e" || e.Attributes["ce_specversion"] != "1.0" {
				t.Errorf("attributes are %v", e.Attributes)
			}
		})
	}
}

// TestForged: every change of a message, and every other sender or addressee, is refused.
//
// Matrix: H47.
func TestForged(t *testing.T) {
	k := newKeys(t)
	public := k.target.Key()
	attribute := func(name, value string) func(*Envelope) {
		return func(e *Envelope) { e.Attributes[name] = value }
	}
	cases := map[string]struct {
		reason string
		change func(*Envelope)
		to     string
		from   IdentityKey
		key    OpeningKey
		want   error
	}{
		"Stranger":   {reason: "A hub that claims to be the manager.", from: k.stranger.Key(), want: ErrForged},
		"NoKey":      {reason: "A sender that was never enrolled.", from: IdentityKey{}, want: ErrForged},
		"Stage":      {reason: "A forged Cleaning of a command that was for another stage.", change: attribute("ce_stage", "Cleaning")},
		"Attempt":    {reason: "A replay that looks newer.", change: attribute("ce_attempt", "99")},
		"Migration":  {reason: "A message of another migration.", change: attribute("ce_migrationid", "other")},
		"Expire":     {reason: "A message that is valid for longer.", change: attribute("ce_expiretime", "9999")},
		"Total":      {reason: "Fewer clusters than there are.", change: attribute("ce_totalclusters", "1")},
		"From":       {reason: "Another sender.", change: attribute("ce_source", "hub3")},
		"Type":       {reason: "Another bundle.", change: attribute("ce_type", string(TypeStatus))},
		"Unsealed":   {reason: "Sealed data that is said not to be.", change: attribute("ce_sealed", "false"), want: ErrForged},
		"Version":    {reason: "A later version.", change: attribute("ce_envelopeversion", "2")},
		"ID":         {reason: "An attribute that is derived.", change: attribute("ce_id", "x")},
		"Signature":  {reason: "No signature.", change: attribute("ce_signature", ""), want: ErrForged},
		"Value":      {reason: "Another value.", change: func(e *Envelope) { e.Value[len(e.Value)-1] ^= 1 }, want: ErrForged},
		"Truncated":  {reason: "A part of the value.", change: func(e *Envelope) { e.Value = e.Value[:10] }, want: ErrForged},
		"Negative":   {reason: "A negative number.", change: attribute("ce_attempt", "-1")},
		"NotForHub":  {reason: "A message for another hub.", to: "hub3", want: ErrOtherAddressee},
		"AnotherKey": {reason: "A hub without the key of the migration.", key: k.other, want: ErrNotForUs},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := write(t, header(TypeResource), "the secret", k.source, &public)
			e.Attributes = maps.Clone(e.Attributes)
			if tc.change != nil {
				tc.change(&e)
			}
			to, from, key := "hub2", k.source.Key(), k.target
			if tc.to != "" {
				to = tc.to
			}
			if errors.Is(tc.want, ErrForged) && tc.change == nil {
				from = tc.from
			}
			if tc.key != (OpeningKey{}) {
				key = tc.key
			}
			_, data, err := Read(e, to, from, &key)
			if err == nil || data != nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("%s\nread %q, %v, want an error (%v)", tc.reason, data, err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "the secret") {
				t.Errorf("the error has the secret: %v", err)
			}
		})
	}
}

// TestUnsealedResources: resources that anybody can read are refused, also if they are
// signed.
//
// Matrix: H53.
func TestUnsealedResources(t *testing.T) {
	k := newKeys(t)
	e := write(t, header(TypeResource), "data", k.source, nil)
	if _, _, err := Read(e, "hub2", k.source.Key(), &k.target); err == nil {
		t.Error("a bundle of resources that was not sealed was read")
	}
}

// TestSealedSecret: the manager relays a kubeconfig that it can't read, and no other
// migration can use it.
//
// Matrix: H58.
func TestSealedSecret(t *testing.T) {
	k := newKeys(t)
	sealed, err := SealSecret(k.target.Key(), "6d4e", []byte("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := OpenSecret(k.target, "6d4e", sealed); err != nil || string(got) != "kubeconfig" {
		t.Errorf("opened %q, %v", got, err)
	}
	for name, open := range map[string]func() ([]byte, error){
		"another migration": func() ([]byte, error) { return OpenSecret(k.target, "other", sealed) },
		"another key":       func() ([]byte, error) { return OpenSecret(k.other, "6d4e", sealed) },
		"nothing":           func() ([]byte, error) { return OpenSecret(k.target, "6d4e", nil) },
	} {
		if got, err := open(); !errors.Is(err, ErrNotForUs) || got != nil {
			t.Errorf("%s: opened %q, %v", name, got, err)
		}
	}
}

// TestKeys: keys survive a restart of the agent.
func TestKeys(t *testing.T) {
	k := newKeys(t)
	identity, err := ReadIdentity(k.source.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	public, err := ReadIdentityKey(k.source.Key().Bytes())
	if err != nil {
		t.Fatal(err)
	}
	secret, err := k.target.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	opening, err := ReadOpeningKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	sealing, err := ReadSealingKey(k.target.Key().Bytes())
	if err != nil {
		t.Fatal(err)
	}
	e := write(t, header(TypeResource), "data", identity, &sealing)
	if _, data, err := Read(e, "hub2", public, &opening); err != nil || string(data) != "data" {
		t.Errorf("read %q, %v", data, err)
	}
	for name, read := range map[string]func() error{
		"identity":     func() error { _, err := ReadIdentity([]byte("x")); return err },
		"identity key": func() error { _, err := ReadIdentityKey(nil); return err },
		"opening key":  func() error { _, err := ReadOpeningKey([]byte("x")); return err },
		"sealing key":  func() error { _, err := ReadSealingKey([]byte("x")); return err },
	} {
		if read() == nil {
			t.Errorf("%s: bytes that are no key were read", name)
		}
	}
}

// Matrix: H43.
func TestAgree(t *testing.T) {
	cases := map[string]struct {
		mine, others []int
		want         int
		ok           bool
	}{
		"Same":      {[]int{1}, []int{1}, 1, true},
		"Highest":   {[]int{1, 2, 3}, []int{2, 1}, 2, true},
		"NoneAgree": {[]int{1}, []int{2}, 0, false},
		"Silent":    {[]int{1}, nil, 0, false},
	}
	for name, tc := range cases {
		if got, ok := CommonVersion(tc.mine, tc.others); got != tc.want || ok != tc.ok {
			t.Errorf("%s: Agree = %d, %t, want %d, %t", name, got, ok, tc.want, tc.ok)
		}
	}
}

// FuzzRead: no message makes Read panic, and none that was not signed is read.
func FuzzRead(f *testing.F) {
	k := newKeys(f)
	public := k.target.Key()
	e := write(f, header(TypeResource), "data", k.source, &public)
	f.Add(e.Attributes["ce_stage"], e.Attributes["ce_attempt"], e.Attributes["ce_signature"], e.Attributes["ce_sealed"], e.Value)
	f.Fuzz(func(t *testing.T, stage, attempt, signature, sealed string, value []byte) {
		changed := Envelope{Attributes: maps.Clone(e.Attributes), Value: value}
		maps.Copy(changed.Attributes, map[string]string{"ce_stage": stage, "ce_attempt": attempt, "ce_signature": signature, "ce_sealed": sealed})
		_, _, err := Read(changed, "hub2", k.source.Key(), &k.target)
		if same := maps.Equal(changed.Attributes, e.Attributes) && bytes.Equal(value, e.Value); (err == nil) != same {
			t.Errorf("a message that was changed: %t, read: %v", !same, err)
		}
	})
}
