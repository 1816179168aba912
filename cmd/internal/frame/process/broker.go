package process

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/internal/broker"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// brokerFlags are the names of the settings on the command line.
var brokerFlags = broker.Names{
	Brokers: "--kafka-brokers", CA: "--kafka-ca", Cert: "--kafka-cert", Key: "--kafka-key",
	SASL: "--kafka-sasl", User: "--kafka-user", PasswordFile: "--kafka-password-file", Plaintext: "--kafka-plaintext",
}

// BrokerFlags say how to reach Kafka.
type BrokerFlags struct {
	settings broker.Settings
	sasl     frame.Choice
}

// AddTo adds the flags.
func (f *BrokerFlags) AddTo(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&f.settings.Brokers, "kafka-brokers", nil, "brokers of Kafka as HOST:PORT; several with commas")
	flags.StringVar(&f.settings.CA, "kafka-ca", "", "file with the CA of the brokers (default: the CAs of the system)")
	flags.StringVar(&f.settings.Cert, "kafka-cert", "", "file with the client certificate, which is read at each connection")
	flags.StringVar(&f.settings.Key, "kafka-key", "", "file with the key of --kafka-cert")
	f.sasl = frame.Choice{Allowed: broker.Mechanisms, Kind: "mechanism"}
	f.sasl.AddTo(c, "kafka-sasl", "", "mechanism of the password: "+strings.Join(f.sasl.Allowed, ", ")+" (default: no password)")
	flags.StringVar(&f.settings.User, "kafka-user", "", "user of --kafka-sasl")
	flags.StringVar(&f.settings.PasswordFile, "kafka-password-file", "", "file with the password of --kafka-user, which is read at each connection")
	flags.BoolVar(&f.settings.Plaintext, "kafka-plaintext", false, "connect without TLS. Secrets are sealed anyway; names of clusters and hubs are not")
}

// Given reports whether the user has given any of the flags.
func (f *BrokerFlags) Given(c *cobra.Command) bool {
	given := false
	for _, name := range []string{
		brokerFlags.Brokers, brokerFlags.CA, brokerFlags.Cert, brokerFlags.Key,
		brokerFlags.SASL, brokerFlags.User, brokerFlags.PasswordFile, brokerFlags.Plaintext,
	} {
		given = given || c.Flags().Changed(strings.TrimPrefix(name, "--"))
	}
	return given
}

// Options are those of a client with a name, as brokers log it.
func (f *BrokerFlags) Options(client string) (kafka.Options, error) {
	s := f.settings
	s.SASL = f.sasl.Value
	if err := s.Validate(brokerFlags); err != nil {
		return kafka.Options{}, frame.Usagef("%v", err)
	}
	return s.Options(client, brokerFlags)
}
