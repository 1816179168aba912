package message

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
)

// MaxBytes bounds a sealed message: its attributes and its value. Kafka's default limit is 1 MB.
const MaxBytes = 800 << 10

// Envelope is a message for the transport.
type Envelope struct {
	// Attributes are headers of the transport.
	Attributes map[string]string
	Value      []byte
}

// Size returns the bytes that count against [MaxBytes].
func (e Envelope) Size() int {
	size := len(e.Value)
	for name, value := range e.Attributes {
		size += len(name) + len(value)
	}
	return size
}

// ErrTooLarge means that a message exceeds [MaxBytes].
var ErrTooLarge = errors.New("the message is larger than 800 KiB")

// Write returns the envelope of signed data. If to is not nil, it first seals the data to that key; the header stays
// readable.
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

// Peek reads the header without verifying it: even its sender is not proven. Callers use it to find the key of the
// sender.
func Peek(e Envelope) (Header, error) {
	h, err := parseHeader(e.Attributes)
	if err != nil {
		return Header{}, fmt.Errorf("read a message: %w", err)
	}
	return h, nil
}

// ErrForged means that a message was not signed by its claimed sender.
var ErrForged = errors.New("the signature is not the sender's")

// ErrOtherAddressee means that a message is addressed to another hub, or to the manager.
var ErrOtherAddressee = errors.New("the message is addressed to another reader")

// Read checks that the sender signed the message and that it is addressed to the reader, and opens a sealed one. The
// caller passes the key that was enrolled for the hub in the header, never a key from the message.
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

// signed returns the bytes that the signature covers.
func signed(h Header, sealed string, value []byte) []byte {
	return append(append(h.authenticated(), sealed...), value...)
}
