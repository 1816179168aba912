package sign_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sigstore/sigstore/pkg/cryptoutils"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/bundle"
	"github.com/godwit-dev/godwit/tools/release/internal/sign"
)

const (
	version  = "v0.1.0"
	commit   = "2f5c0d1e0d5d4f0d8a9b6c7e1f2a3b4c5d6e7f80"
	password = "a password"

	archiveName = "godwit_v0.1.0_linux_amd64.tar.gz"
)

// keyOf returns a key of `cosign generate-key-pair`.
func keyOf(t *testing.T) sign.Key {
	t.Helper()
	private, _, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte(password)))
	if err != nil {
		t.Fatal(err)
	}
	key, err := sign.ReadKey(private, []byte(password))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// archive has this test as its program.
var archive = sync.OnceValues(func() ([]byte, error) {
	test, err := os.Executable()
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(test)
	if err != nil {
		return nil, err
	}
	return bundle.Write(archiveName, []bundle.File{{Name: artifact.Program, Content: program, Mode: bundle.Executable}}, time.Unix(0, 0))
})

// released is a release with one archive.
func released(t *testing.T) sign.Release {
	t.Helper()
	content, err := archive()
	if err != nil {
		t.Fatal(err)
	}
	r := sign.Release{Dir: t.TempDir(), Version: version}
	put := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(r.Dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(archiveName, content)
	put(artifact.Tags, []byte(version+" "+commit+"\ncmd/"+version+" "+commit+"\n"))
	sums, err := bundle.Checksums(r.Dir, artifact.Unlisted...)
	if err != nil {
		t.Fatal(err)
	}
	put(artifact.Checksums, sums)
	return r
}

func signed(t *testing.T, key sign.Key) sign.Release {
	t.Helper()
	r := released(t)
	if err := r.Sign(key); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSign: the signatures are those of the key, of these files, and of no others.
func TestSign(t *testing.T) {
	key, another := keyOf(t), keyOf(t)
	change := func(name string, change func(string) string) func(t *testing.T, r sign.Release) {
		return func(t *testing.T, r sign.Release) {
			t.Helper()
			path := filepath.Join(r.Dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(change(string(text))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	add := func(text string) func(string) string { return func(s string) string { return s + text } }
	other := signed(t, key) // whose signatures are right for another folder
	otherFile := func(name string) func(string) string {
		return func(string) string {
			text, err := os.ReadFile(filepath.Join(other.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
	change(artifact.Tags, add("x"))(t, other)
	sums, err := bundle.Checksums(other.Dir, artifact.Unlisted...)
	if err != nil {
		t.Fatal(err)
	}
	change(artifact.Checksums, func(string) string { return string(sums) })(t, other)
	if err := other.Sign(key); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		edit func(t *testing.T, r sign.Release)
		key  sign.Key
		want string
	}{
		"as signed":              {func(*testing.T, sign.Release) {}, key, ""},
		"another key":            {func(*testing.T, sign.Release) {}, another, artifact.Signature},
		"a changed file":         {change(artifact.Tags, add("x")), key, "has other files than checksums.txt says"},
		"a changed list":         {change(artifact.Checksums, add("0  x\n")), key, "has other files"},
		"a signature of others":  {change(artifact.Signature, otherFile(artifact.Signature)), key, artifact.Signature},
		"a provenance of others": {change(artifact.Provenance, otherFile(artifact.Provenance)), key, "is about other files"},
		"a changed provenance":   {change(artifact.Provenance, func(s string) string { return strings.Replace(s, `"payload":"ey`, `"payload":"ez`, 1) }), key, artifact.Provenance},
		"no signature": {func(t *testing.T, r sign.Release) {
			t.Helper()
			_ = os.Remove(filepath.Join(r.Dir, artifact.Signature))
		}, key, "no such file"},
		"a signature that is no text": {change(artifact.Signature, func(string) string { return "?" }), key, "illegal base64"},
	} {
		t.Run(name, func(t *testing.T) {
			r := signed(t, key)
			c.edit(t, r)
			got, err := r.Verify(c.key.Public)
			if c.want == "" && (err != nil || got != commit) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("commit %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// TestSignRefuses: nothing is signed that is not what the checksums say.
func TestSignRefuses(t *testing.T) {
	r := released(t)
	if err := os.WriteFile(filepath.Join(r.Dir, "more"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Sign(keyOf(t)); err == nil || !strings.Contains(err.Error(), "make the release again") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(r.Dir, artifact.Signature)); err == nil {
		t.Error("there is a signature")
	}
}

// TestProvenance: the statement has what SLSA v1 requires.
func TestProvenance(t *testing.T) {
	r := signed(t, keyOf(t))
	text, err := os.ReadFile(filepath.Join(r.Dir, artifact.Provenance))
	if err != nil {
		t.Fatal(err)
	}
	var envelope struct {
		PayloadType, Payload string
		Signatures           []struct{ Sig string }
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		t.Fatal(err)
	}
	payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(payload, &got); err != nil {
		t.Fatal(err)
	}
	subjects, _ := got["subject"].([]any)
	if len(subjects) != 2 || len(envelope.Signatures) != 1 || strings.Count(string(text), "\n") != 1 {
		t.Errorf("%d subjects, %d signatures", len(subjects), len(envelope.Signatures))
	}
	delete(got, "subject")
	const home = "https://github.com/godwit-dev/godwit"
	want := map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":          home + "/blob/main/docs/adr/0067-releases.md",
				"externalParameters": map[string]any{"repository": home, "command": "make release VERSION=v0.1.0"},
				"resolvedDependencies": []any{
					map[string]any{"uri": "git+" + home + "@refs/tags/v0.1.0", "digest": map[string]any{"gitCommit": commit}},
					map[string]any{"name": runtime.Version(), "uri": "https://go.dev/dl/#" + runtime.Version()},
				},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": home + "/blob/main/CONTRIBUTING.md#make-a-release"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statement (-want +got):\n%s", diff)
	}
}

// TestReadKey reads keys of cosign and of openssl, and refuses what cosign does not make.
func TestReadKey(t *testing.T) {
	encode := func(curve elliptic.Curve) []byte {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	cosign, _, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte(password)))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text     []byte
		password string
		want     string
	}{
		"of openssl":       {encode(elliptic.P256()), "", ""},
		"of cosign":        {cosign, password, ""},
		"a wrong password": {cosign, "another", "read the key"},
		"another curve":    {encode(elliptic.P384()), "", "not an ECDSA key on P-256"},
		"no key":           {[]byte("x"), "", "read the key"},
	} {
		if _, err := sign.ReadKey(c.text, []byte(c.password)); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestOthersVerify: openssl and cosign accept the signatures, and refuse them for other files. The test runs the programs that are installed.
func TestOthersVerify(t *testing.T) {
	key := keyOf(t)
	r := signed(t, key)
	file := func(name string) string { return filepath.Join(r.Dir, name) }
	public := filepath.Join(t.TempDir(), "cosign.pub")
	if err := os.WriteFile(public, key.Public, 0o600); err != nil {
		t.Fatal(err)
	}
	encoded, err := os.ReadFile(file(artifact.Signature))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(string(encoded))
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "signature")
	if err := os.WriteFile(binary, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	offline := []string{"--key=" + public, "--insecure-ignore-tlog=true", "--new-bundle-format=false"}
	for name, c := range map[string]struct {
		program string
		args    []string // the last is the file
		file    string
	}{
		"openssl, the checksums": {"openssl", []string{"dgst", "-sha256", "-verify", public, "-signature", binary}, artifact.Checksums},
		"cosign, the checksums":  {"cosign", append([]string{"verify-blob", "--signature=" + file(artifact.Signature)}, offline...), artifact.Checksums},
		"cosign, the provenance of an archive": {
			"cosign", append([]string{"verify-blob-attestation", "--type=slsaprovenance1", "--signature=" + file(artifact.Provenance)}, offline...), archiveName,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(c.program); err != nil {
				t.Skipf("%s is not installed", c.program)
			}
			for _, one := range []struct {
				file string
				ok   bool
			}{{file(c.file), true}, {public, false}} {
				out, err := exec.CommandContext(t.Context(), c.program, append(c.args, one.file)...).CombinedOutput()
				if (err == nil) != one.ok {
					t.Errorf("%s: %v\n%s", one.file, err, out)
				}
			}
		})
	}
}
