// Package sign signs a release with a key: its checksums, and a statement that says from what it was made. Both are in the forms that
// cosign verifies: a signature of a blob, and the provenance of SLSA as a statement of in-toto in an envelope.
//
// It asks no service: neither a certificate authority nor a transparency log knows of the signatures. A user with the public key
// verifies them offline.
//
// Read provenance.go, which writes and reads the statement, then sign.go.
package sign

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/bundle"
)

// Release is a release in a folder.
type Release struct {
	Dir, Version string
}

// Key is a private key and its public one.
type Key struct {
	private *ecdsa.PrivateKey
	// Public is the public key in PEM, as cosign.pub has it.
	Public []byte
}

// ReadKey reads a private key in PEM: one of `cosign generate-key-pair`, with its password, or one of openssl.
func ReadKey(text, password []byte) (Key, error) {
	private, err := cryptoutils.UnmarshalPEMToPrivateKey(text, func(bool) ([]byte, error) { return password, nil })
	if err != nil {
		return Key{}, fmt.Errorf("read the key: %w", err)
	}
	key, is := private.(*ecdsa.PrivateKey)
	if !is || key.Curve != elliptic.P256() {
		return Key{}, errors.New("the key is not an ECDSA key on P-256, as `cosign generate-key-pair` makes it")
	}
	public, err := cryptoutils.MarshalPublicKeyToPEM(key.Public())
	return Key{key, public}, err
}

// Sign writes the signature of the checksums, and the signed provenance. It refuses a folder that is not what its checksums say.
func (r Release) Sign(key Key) error {
	sums, err := r.checksums()
	if err != nil {
		return err
	}
	statement, err := r.statement(sums)
	if err != nil {
		return err
	}
	signer, err := signature.LoadECDSASigner(key.private, crypto.SHA256)
	if err != nil {
		return err
	}
	raw, err := signer.SignMessage(bytes.NewReader(sums))
	if err != nil {
		return err
	}
	envelope, err := dsse.WrapSigner(signer, payloadType).SignMessage(bytes.NewReader(statement))
	if err != nil {
		return err
	}
	return errors.Join(r.put(artifact.Signature, []byte(base64.StdEncoding.EncodeToString(raw))), r.put(artifact.Provenance, append(envelope, '\n')))
}

// Verify verifies both signatures by a public key in PEM, and that the provenance is about all files of the release. It returns the
// commit that the provenance names.
func (r Release) Verify(public []byte) (commit string, err error) {
	sums, err := r.checksums()
	if err != nil {
		return "", err
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("read the public key: %w", err)
	}
	verifier, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		return "", err
	}
	encoded, err := r.read(artifact.Signature)
	if err != nil {
		return "", err
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(encoded)))
	if err != nil {
		return "", fmt.Errorf("%s: %w", artifact.Signature, err)
	}
	if err := verifier.VerifySignature(bytes.NewReader(raw), bytes.NewReader(sums)); err != nil {
		return "", fmt.Errorf("%s: %w", artifact.Signature, err)
	}
	envelope, err := r.read(artifact.Provenance)
	if err != nil {
		return "", err
	}
	if err := dsse.WrapVerifier(verifier).VerifySignature(bytes.NewReader(envelope), nil); err != nil {
		return "", fmt.Errorf("%s: %w", artifact.Provenance, err)
	}
	return commitOf(envelope, sums)
}

// checksums returns the list of checksums, if the folder has what it says.
func (r Release) checksums() ([]byte, error) {
	want, err := r.read(artifact.Checksums)
	if err != nil {
		return nil, err
	}
	got, err := bundle.Checksums(r.Dir, artifact.Unlisted...)
	if err == nil && !bytes.Equal(want, got) {
		err = fmt.Errorf("%s has other files than %s says: make the release again", r.Dir, artifact.Checksums)
	}
	return want, err
}

func (r Release) read(name string) ([]byte, error) { return os.ReadFile(filepath.Join(r.Dir, name)) }

func (r Release) put(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.Dir, name), content, 0o644) //nolint:gosec // what everyone may read
}
