package message

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// reference is the page by which others write an agent.
func reference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/reference/hub-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// bundles are the types of data.
var bundles = map[Type]any{
	TypeSource: &SourceBundle{}, TypeTarget: &TargetBundle{}, TypeStatus: &StatusBundle{}, TypeResource: &ResourceBundle{}, TypeHeartbeat: &Heartbeat{},
}

// section is what the page says about a type.
func section(t *testing.T, kind Type) string {
	t.Helper()
	_, text, found := strings.Cut(reference(t), "### "+string(kind)+"\n")
	if !found {
		t.Fatalf("the reference has no section about %s", kind)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	text, _, _ = strings.Cut(text, "\n### ")
	return text
}

// fields are the names of all fields of a type, also of the types of this package within it.
func fields(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || !strings.HasSuffix(t.PkgPath(), "hub/message") {
		return nil
	}
	var all []string
	for f := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(f).Tag.Get("json"), ",")
		all = append(all, name)
		if t.Field(f).Name != "Missing" {
			all = append(all, fields(t.Field(f).Type)...)
		}
	}
	return all
}

// TestReference: the reference has each attribute and each field, and its examples are bundles.
func TestReference(t *testing.T) {
	text := reference(t)
	e := write(t, header(TypeTarget), "{}", newKeys(t).source, nil)
	for name := range e.Attributes {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the reference has no attribute %s", name)
		}
	}
	example := regexp.MustCompile("(?s)```json\n(.*?)```")
	for kind, bundle := range bundles {
		about := section(t, kind)
		for _, name := range fields(reflect.TypeOf(bundle)) {
			if !strings.Contains(about, "`"+name+"`") && !strings.Contains(about, "."+name+"`") {
				t.Errorf("the section about %s has no field %s", kind, name)
			}
		}
		found := example.FindStringSubmatch(about)
		if found == nil {
			t.Errorf("the section about %s has no example", kind)
			continue
		}
		strict := json.NewDecoder(strings.NewReader(found[1]))
		strict.DisallowUnknownFields()
		if err := strict.Decode(bundle); err != nil {
			t.Errorf("the example of %s: %v", kind, err)
		}
		written, err := encode(bundle)
		if err != nil {
			t.Fatal(err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(found[1])); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(compact.String(), string(written)); diff != "" {
			t.Errorf("the example of %s (-page +written):\n%s", kind, diff)
		}
	}
	r := NewReassembler([]string{"c1"}, 1<<20)
	if got, err := r.Add(*bundles[TypeResource].(*ResourceBundle)); err != nil || len(got) != 1 {
		t.Errorf("the example of resources is not complete: %v, %v", got, err)
	}
}

// vectors are messages with all keys, by which another implementation can be tested.
type vectors struct {
	Messages []vector `json:"messages"`
	// Secret is one within a bundle.
	Secret secretVector `json:"secret"`
}

type vector struct {
	About string `json:"about"`
	// Identity is the private key of the sender, and IdentityKey the public one.
	Identity    []byte `json:"identity"`
	IdentityKey []byte `json:"identityKey"`
	// OpeningKey opens the value, if it is sealed.
	OpeningKey []byte            `json:"openingKey,omitempty"`
	Header     []byte            `json:"canonicalHeader"`
	Attributes map[string]string `json:"attributes"`
	Value      []byte            `json:"value"`
	Data       string            `json:"data"`
}

type secretVector struct {
	OpeningKey []byte `json:"openingKey"`
	SealingKey []byte `json:"sealingKey"`
	Migration  string `json:"migration"`
	Sealed     []byte `json:"sealed"`
	Secret     string `json:"secret"`
}

var update = flag.Bool("update", false, "write testdata/vectors.json anew")

// TestVectors reads the messages that others test with, and signs them again.
func TestVectors(t *testing.T) {
	file := filepath.Join("testdata", "vectors.json")
	if *update {
		text, err := json.MarshalIndent(newVectors(t), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all vectors
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, v := range all.Messages {
		t.Run(v.About, func(t *testing.T) { v.check(t) })
	}
	key, err := ReadOpeningKey(all.Secret.OpeningKey)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := OpenSecret(key, all.Secret.Migration, all.Secret.Sealed); err != nil || string(got) != all.Secret.Secret || !bytes.Equal(key.Key().Bytes(), all.Secret.SealingKey) {
		t.Errorf("the secret is %q, %v, want %q", got, err, all.Secret.Secret)
	}
}

func (v vector) check(t *testing.T) {
	from, err := ReadIdentityKey(v.IdentityKey)
	if err != nil {
		t.Fatal(err)
	}
	var key *OpeningKey
	if v.OpeningKey != nil {
		read, err := ReadOpeningKey(v.OpeningKey)
		if err != nil {
			t.Fatal(err)
		}
		key = &read
	}
	e := Envelope{Attributes: v.Attributes, Value: v.Value}
	h, data, err := Read(e, v.Attributes[attrSubject], from, key)
	if err != nil || string(data) != v.Data {
		t.Fatalf("read %q, %v, want %q", data, err, v.Data)
	}
	if !bytes.Equal(h.authenticated(), v.Header) {
		t.Errorf("the canonical header is %q, want %q", h.authenticated(), v.Header)
	}
	own, err := ReadIdentity(v.Identity)
	if err != nil {
		t.Fatal(err)
	}
	if again := base64.StdEncoding.EncodeToString(ed25519.Sign(own.private, signed(h, v.Attributes[attrSealed], v.Value))); again != v.Attributes[attrSignature] {
		t.Errorf("the signature is %s, want %s", again, v.Attributes[attrSignature])
	}
}

func newVectors(t *testing.T) vectors {
	t.Helper()
	k := newKeys(t)
	opening, err := k.target.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	public := k.target.Key()
	one := func(about string, h Header, data string, from Identity, to *SealingKey) vector {
		e := write(t, h, data, from, to)
		h.Version = Version
		v := vector{About: about, Identity: from.Bytes(), IdentityKey: from.Key().Bytes(), Header: h.authenticated(), Attributes: e.Attributes, Value: e.Value, Data: data}
		if to != nil {
			v.OpeningKey = opening
		}
		return v
	}
	command := Header{Type: TypeTarget, Migration: "6d4e", From: ManagerName, To: "hub2", Stage: api.PhaseDeploying, Attempt: 10, ValidFor: 5 * time.Minute, TotalClusters: 2}
	all := vectors{Messages: []vector{
		one("a command", command, `{"command":{"stage":"Deploying","attempt":10,"orders":[{"action":"ReceiveResources","clusters":["c1"]}]},"fromHub":"hub1"}`, k.manager, nil),
		one("a heartbeat", Header{Type: TypeHeartbeat, From: "hub1", To: ManagerName, ValidFor: time.Minute}, `{"hub":"hub1","versions":[1]}`, k.source, nil),
		one("sealed resources", header(TypeResource), `{"totalClusters":1,"migrationClusterResources":[]}`, k.source, &public),
	}}
	sealed, err := SealSecret(public, "6d4e", []byte("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	all.Secret = secretVector{opening, public.Bytes(), "6d4e", sealed, "kubeconfig"}
	return all
}
