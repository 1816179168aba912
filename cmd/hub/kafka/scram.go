package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Mechanisms that authenticate a client without sending its password to the broker.
const (
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
)

// Scram returns the mechanism that authenticates a user. It reads the password at each connection, so the password may
// change.
func Scram(mechanism, user string, password func() (string, error)) (sasl.Mechanism, error) {
	auth := func(context.Context) (scram.Auth, error) {
		text, err := password()
		if err != nil {
			return scram.Auth{}, fmt.Errorf("read the password of user %s of Kafka: %w", user, err)
		}
		return scram.Auth{User: user, Pass: text}, nil
	}
	switch mechanism {
	case ScramSHA256:
		return scram.Sha256(auth), nil
	case ScramSHA512:
		return scram.Sha512(auth), nil
	}
	return nil, fmt.Errorf("unknown mechanism %q: there are %s and %s", mechanism, ScramSHA256, ScramSHA512)
}
