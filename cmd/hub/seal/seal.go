// Package seal proves who has written what the manager stores in ConfigMaps of a namespace of users. A digest in the status of the migration
// proves the content that was committed: only the manager writes the status. A signature with the identity of the manager proves content
// that was written before its commit. The package does no I/O.
package seal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// Annotation has the signature of a ConfigMap.
const Annotation = "godwit.dev/signature"

// Content is what is proven: the data of a ConfigMap, with where it belongs, so that data of another migration or of another ConfigMap does not
// pass for it.
type Content struct {
	// Migration is the UID of the migration.
	Migration string
	// Name is the name of the ConfigMap.
	Name string
	// Before has the digests of the commit that the content follows; none if it is not committed.
	Before []string
	Data   map[string][]byte
}

// Texts returns the data of a ConfigMap with texts.
func Texts(data map[string]string) map[string][]byte {
	all := make(map[string][]byte, len(data))
	for key, text := range data {
		all[key] = []byte(text)
	}
	return all
}

// Digest returns the digest of the content, without what it follows.
func (c Content) Digest() string {
	c.Before = nil
	sum := sha256.Sum256(c.bytes())
	return base64.RawStdEncoding.EncodeToString(sum[:])
}

// Sign returns the signature of the content.
func (c Content) Sign(by message.Identity) string {
	return base64.StdEncoding.EncodeToString(by.Sign(purpose, c.bytes()))
}

// IsSigned reports whether a signature is that of the content.
func (c Content) IsSigned(by message.IdentityKey, signature string) bool {
	data, err := base64.StdEncoding.DecodeString(signature)
	return err == nil && by.Verify(purpose, c.bytes(), data)
}

// purpose keeps a signature from being taken for one of a message.
const purpose = "godwit hub state 1"

// bytes returns the canonical form of the content. Each part is preceded by its length.
func (c Content) bytes() []byte {
	var out []byte
	add := func(part []byte) {
		out = binary.BigEndian.AppendUint64(out, uint64(len(part)))
		out = append(out, part...)
	}
	add([]byte(c.Migration))
	add([]byte(c.Name))
	out = binary.BigEndian.AppendUint64(out, uint64(len(c.Before)))
	for _, digest := range c.Before {
		add([]byte(digest))
	}
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		add([]byte(key))
		add(c.Data[key])
	}
	return out
}
