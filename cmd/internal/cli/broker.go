package cli

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/hub/kafka"
)

// BrokerFlags say how to reach Kafka.
type BrokerFlags struct {
	brokers            []string
	plaintext          bool
	ca, cert, key      string
	sasl               Choice
	user, passwordFile string
}

// AddTo adds the flags.
func (f *BrokerFlags) AddTo(c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&f.brokers, "kafka-brokers", nil, "brokers of Kafka as HOST:PORT; several with commas")
	flags.StringVar(&f.ca, "kafka-ca", "", "file with the CA of the brokers (default: the CAs of the system)")
	flags.StringVar(&f.cert, "kafka-cert", "", "file with the client certificate, which is read at each connection")
	flags.StringVar(&f.key, "kafka-key", "", "file with the key of --kafka-cert")
	f.sasl = Choice{Allowed: []string{kafka.ScramSHA256, kafka.ScramSHA512}, Kind: "mechanism"}
	f.sasl.AddTo(c, "kafka-sasl", "", "mechanism of the password: "+strings.Join(f.sasl.Allowed, ", ")+" (default: no password)")
	flags.StringVar(&f.user, "kafka-user", "", "user of --kafka-sasl")
	flags.StringVar(&f.passwordFile, "kafka-password-file", "", "file with the password of --kafka-user, which is read at each connection")
	flags.BoolVar(&f.plaintext, "kafka-plaintext", false, "connect without TLS. Secrets are sealed anyway; names of clusters and hubs are not")
}

// Options are those of a client with a name, as brokers log it.
func (f *BrokerFlags) Options(client string) (kafka.Options, error) {
	o := kafka.Options{Brokers: f.brokers, ClientID: client}
	switch {
	case len(f.brokers) == 0:
		return o, Usagef("no broker is given: give --kafka-brokers=HOST:PORT")
	case f.plaintext && f.ca+f.cert+f.key != "":
		return o, Usagef("--kafka-plaintext has no TLS: remove it, or remove --kafka-ca, --kafka-cert and --kafka-key")
	case (f.cert == "") != (f.key == ""):
		return o, Usagef("--kafka-cert and --kafka-key belong together")
	case f.sasl.Value == "" && f.user+f.passwordFile != "":
		return o, Usagef("--kafka-user and --kafka-password-file need --kafka-sasl")
	case f.sasl.Value != "" && (f.user == "" || f.passwordFile == ""):
		return o, Usagef("--kafka-sasl needs --kafka-user and --kafka-password-file")
	}
	if !f.plaintext {
		var err error
		if o.TLS, err = f.tls(); err != nil {
			return o, err
		}
	}
	if f.sasl.Value == "" {
		return o, nil
	}
	mechanism, err := kafka.Scram(f.sasl.Value, f.user, func() (string, error) {
		text, err := os.ReadFile(f.passwordFile)
		return strings.TrimRight(string(text), "\r\n"), err
	})
	o.SASL = mechanism
	return o, err
}

func (f *BrokerFlags) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, fmt.Errorf("read --kafka-ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--kafka-ca: %s has no certificate in PEM", f.ca)
		}
	}
	if f.cert != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(f.cert, f.key)
			return &pair, err
		}
		if _, err := load(); err != nil {
			return nil, fmt.Errorf("read --kafka-cert and --kafka-key: %w", err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return config, nil
}
