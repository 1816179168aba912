package message

import (
	"crypto/ed25519"
	"crypto/hpke"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Identity signs messages. The manager and each agent have a permanent one. The public key of an agent is enrolled with
// the manager; each agent gets the manager's at its installation.
type Identity struct{ private ed25519.PrivateKey }

// IdentityKey is the public half of an [Identity].
type IdentityKey struct{ public ed25519.PublicKey }

// NewIdentity returns a new identity.
func NewIdentity() (Identity, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return Identity{}, fmt.Errorf("make an identity: %w", err)
	}
	return Identity{private}, nil
}

// Key returns the public key.
func (i Identity) Key() IdentityKey { return IdentityKey{i.private.Public().(ed25519.PublicKey)} }

// Sign signs data for a purpose that is not a message. The purpose keeps its signatures apart from those for others.
func (i Identity) Sign(purpose string, data []byte) []byte {
	return ed25519.Sign(i.private, forPurpose(purpose, data))
}

// Verify reports whether the identity has signed data for a purpose.
func (k IdentityKey) Verify(purpose string, data, signature []byte) bool {
	return len(k.public) == ed25519.PublicKeySize && ed25519.Verify(k.public, forPurpose(purpose, data), signature)
}

// forPurpose returns the bytes that a signature for a purpose covers. A message begins with other bytes.
func forPurpose(purpose string, data []byte) []byte {
	return slices.Concat([]byte("godwit for "+purpose+"\x00"), data)
}

// Bytes returns the private key, for [ReadIdentity].
func (i Identity) Bytes() []byte { return i.private.Seed() }

// ReadIdentity parses the private key of an identity.
func ReadIdentity(secret []byte) (Identity, error) {
	if len(secret) != ed25519.SeedSize {
		return Identity{}, fmt.Errorf("read an identity: %d bytes, want %d", len(secret), ed25519.SeedSize)
	}
	return Identity{ed25519.NewKeyFromSeed(secret)}, nil
}

// Bytes returns the public key, for enrolment.
func (k IdentityKey) Bytes() []byte { return k.public }

// ReadIdentityKey reads a public key.
func ReadIdentityKey(public []byte) (IdentityKey, error) {
	if len(public) != ed25519.PublicKeySize {
		return IdentityKey{}, fmt.Errorf("read the key of an identity: %d bytes, want %d", len(public), ed25519.PublicKeySize)
	}
	return IdentityKey{ed25519.PublicKey(public)}, nil
}

// The suite of HPKE (RFC 9180) is a hybrid of X25519 and ML-KEM-768: a broker may keep messages until X25519 is broken.
var (
	kem  = hpke.MLKEM768X25519()
	kdf  = hpke.HKDFSHA256()
	aead = hpke.AES256GCM()
)

// info binds sealed data to this protocol.
var info = []byte("godwit hub envelope 1")

// OpeningKey opens data that was sealed to one hub in one migration. It is kept for all attempts, and deleted at the
// end of the migration.
type OpeningKey struct{ private hpke.PrivateKey }

// SealingKey is the public half of an [OpeningKey].
type SealingKey struct{ public hpke.PublicKey }

// NewOpeningKey returns a new key for a migration.
func NewOpeningKey() (OpeningKey, error) {
	private, err := kem.GenerateKey()
	if err != nil {
		return OpeningKey{}, fmt.Errorf("make a key: %w", err)
	}
	return OpeningKey{private}, nil
}

// Key returns the public key.
func (k OpeningKey) Key() SealingKey { return SealingKey{k.private.PublicKey()} }

// Bytes returns the private key, for [ReadOpeningKey].
func (k OpeningKey) Bytes() ([]byte, error) { return k.private.Bytes() }

// ReadOpeningKey parses the private key.
func ReadOpeningKey(secret []byte) (OpeningKey, error) {
	private, err := kem.NewPrivateKey(secret)
	if err != nil {
		return OpeningKey{}, fmt.Errorf("read a key: %w", err)
	}
	return OpeningKey{private}, nil
}

// Bytes returns the public key.
func (k SealingKey) Bytes() []byte { return k.public.Bytes() }

// ReadSealingKey reads a public key.
func ReadSealingKey(public []byte) (SealingKey, error) {
	key, err := kem.NewPublicKey(public)
	if err != nil {
		return SealingKey{}, fmt.Errorf("read a public key: %w", err)
	}
	return SealingKey{key}, nil
}

// sealedOverhead is the number of bytes that sealing adds: the encapsulated key and the tag of the cipher.
const sealedOverhead = encBytes + 16

// encBytes is the size of the encapsulated key: 1088 of ML-KEM-768, 32 of X25519.
const encBytes = 1088 + 32

func (k SealingKey) seal(authenticated, data []byte) ([]byte, error) {
	enc, sender, err := hpke.NewSender(k.public, kdf, aead, info)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	sealed, err := sender.Seal(authenticated, data)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return append(enc, sealed...), nil
}

// ErrNotForUs means that data was sealed to another key, or changed on the way.
var ErrNotForUs = errors.New("the data was sealed to another key, or changed on the way")

func (k OpeningKey) open(authenticated, sealed []byte) ([]byte, error) {
	if len(sealed) < sealedOverhead {
		return nil, ErrNotForUs
	}
	recipient, err := hpke.NewRecipient(sealed[:encBytes], k.private, kdf, aead, info)
	if err != nil {
		return nil, ErrNotForUs
	}
	data, err := recipient.Open(authenticated, sealed[encBytes:])
	if err != nil {
		return nil, ErrNotForUs
	}
	return data, nil
}

// Sealed is a secret within a bundle that is itself readable, such as the bootstrap
// kubeconfig in a command of the manager, which the target has sealed to the source.
type Sealed []byte

// SealSecret seals a secret of a migration to a hub.
func SealSecret(to SealingKey, migration string, secret []byte) (Sealed, error) {
	return to.seal([]byte("secret of migration "+migration), secret)
}

// OpenSecret opens the output of [SealSecret].
func OpenSecret(key OpeningKey, migration string, sealed Sealed) ([]byte, error) {
	return key.open([]byte("secret of migration "+migration), sealed)
}

// CommonVersion returns the highest envelope version that both sides read, or false if they share none. Heartbeats list
// the versions of an agent.
func CommonVersion(mine, others []int) (version int, ok bool) {
	for _, a := range mine {
		for _, b := range others {
			if a == b && a > version {
				version, ok = a, true
			}
		}
	}
	return version, ok
}

// encode writes data of a bundle.
func encode(bundle any) ([]byte, error) {
	data, err := json.Marshal(bundle)
	if err != nil {
		return nil, fmt.Errorf("encode a bundle: %w", err)
	}
	return data, nil
}
