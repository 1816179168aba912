package message

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
)

// MaxBytes bounds a message: attributes and value, sealed. Kafka takes 1 MB by default.
const MaxBytes = 800 << 10

// Envelope is a message as the transport has it.
type Envelope struct {
	// Attributes are headers of the transport.
	Attributes map[string]string
	Value      []byte
}

// Size is what counts against [MaxBytes].
func (e Envelope) Size() int {
	size := len(e.Value)
	for name, value := range e.Attributes {
		size += len(name) + len(value)
	}
	return size
}

// ErrTooLarge means that a message exceeds [MaxBytes].
var ErrTooLarge = errors.New("the message is larger than 800 KiB")

// Write signs data, after sealing it to the addressee if there is one. The header of a
// sealed message is readable.
func Write(h Header, data []byte, from Identity, to *SealingKey) (Envelope, error) {
	h.Version = Version
	sealed := "false"
	if to != nil {
		var err error
		if data, err = to.seal(h.authenticated(), data); err != nil {
			return Envelope{}, fmt.Errorf("write %s: %w", h.Type, err)
		}
		sealed = "true"
	}
	e := Envelope{Attributes: h.attributes(), Value: data}
	e.Attributes[attrSealed] = sealed
	e.Attributes[attrSignature] = base64.StdEncoding.EncodeToString(ed25519.Sign(from.private, signed(h, sealed, data)))
	if _, err := parseHeader(e.Attributes); err != nil {
		return Envelope{}, fmt.Errorf("write %s: %w", h.Type, err)
	}
	if size := e.Size(); size > MaxBytes {
		return Envelope{}, fmt.Errorf("write %s of %d bytes: %w", h.Type, size, ErrTooLarge)
	}
	return e, nil
}

// Peek reads the header, of which nothing is proven yet: not who wrote it, either. It
// serves to find the key of the sender.
func Peek(e Envelope) (Header, error) {
	h, err := parseHeader(e.Attributes)
	if err != nil {
		return Header{}, fmt.Errorf("read a message: %w", err)
	}
	return h, nil
}

// ErrForged means that a message was not signed by the one that it claims to come from.
var ErrForged = errors.New("the signature is not the sender's")

// ErrOtherAddressee means that a message is addressed to another hub, or to the manager.
var ErrOtherAddressee = errors.New("the message is addressed to another reader")

// Read checks that a message was signed by the sender and is for the reader, and opens it
// if it is sealed. The sender's key is the one that was enrolled for the hub in the header,
// and never one from the message.
func Read(e Envelope, to string, from IdentityKey, key *OpeningKey) (Header, []byte, error) {
	h, err := Peek(e)
	if err != nil {
		return Header{}, nil, err
	}
	failed := func(err error) (Header, []byte, error) {
		return Header{}, nil, fmt.Errorf("read %s from %s: %w", h.Type, h.From, err)
	}
	if size := e.Size(); size > MaxBytes {
		return failed(ErrTooLarge)
	}
	signature, err := base64.StdEncoding.DecodeString(e.Attributes[attrSignature])
	sealed := e.Attributes[attrSealed]
	if err != nil || len(from.public) != ed25519.PublicKeySize || !ed25519.Verify(from.public, signed(h, sealed, e.Value), signature) {
		return failed(ErrForged)
	}
	if h.To != to {
		return failed(fmt.Errorf("%w, %s", ErrOtherAddressee, h.To))
	}
	if sealed != "true" {
		if h.Type == TypeResource {
			return failed(errors.New("the bundle is not sealed"))
		}
		return h, e.Value, nil
	}
	if key == nil {
		return failed(errors.New("the message is sealed, and there is no key for the migration"))
	}
	data, err := key.open(h.authenticated(), e.Value)
	if err != nil {
		return failed(err)
	}
	return h, data, nil
}

// signed is what a signature is about.
func signed(h Header, sealed string, value []byte) []byte {
	return append(append(h.authenticated(), sealed...), value...)
}
