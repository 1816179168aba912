// Package broker has the settings with which a process connects to Kafka. Command line and configuration file have the
// same settings.
package broker

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/cmd/hub/kafka"
)

// Mechanisms are the SASL mechanisms for passwords.
var Mechanisms = []string{kafka.ScramSHA256, kafka.ScramSHA512}

// Settings are the connection settings of Kafka.
type Settings struct {
	// Brokers are the brokers of Kafka as HOST:PORT.
	Brokers []string `json:"brokers,omitempty"`
	// CA is a file with the CA of the brokers; the CAs of the system unless set.
	CA string `json:"ca,omitempty"`
	// Cert is a file with the client certificate, which is read at each connection.
	Cert string `json:"cert,omitempty"`
	// Key is a file with the key of the client certificate.
	Key string `json:"key,omitempty"`
	// SASL is the mechanism of the password: SCRAM-SHA-256 or SCRAM-SHA-512. Unset means no
	// password.
	SASL string `json:"sasl,omitempty"`
	// User is the user that has the password.
	User string `json:"user,omitempty"`
	// PasswordFile is a file with the password, which is read at each connection.
	PasswordFile string `json:"passwordFile,omitempty"`
	// Plaintext means that the process connects without TLS. Secrets are sealed anyway; names of clusters and hubs are
	// not.
	Plaintext bool `json:"plaintext,omitempty"`
}

// Names are the user's names of the settings, for messages.
type Names struct{ Brokers, CA, Cert, Key, SASL, User, PasswordFile, Plaintext string }

// Keys are the names of the settings in a section of a configuration file.
func Keys(section string) Names {
	return Names{
		Brokers: section + ".brokers", CA: section + ".ca", Cert: section + ".cert", Key: section + ".key",
		SASL: section + ".sasl", User: section + ".user", PasswordFile: section + ".passwordFile", Plaintext: section + ".plaintext",
	}
}

// Validate returns an error if settings contradict each other.
func (s Settings) Validate(n Names) error {
	switch {
	case len(s.Brokers) == 0:
		return fmt.Errorf("specify %s=HOST:PORT", n.Brokers)
	case s.Plaintext && s.CA+s.Cert+s.Key != "":
		return fmt.Errorf("%s has no TLS: remove it, or remove %s, %s and %s", n.Plaintext, n.CA, n.Cert, n.Key)
	case (s.Cert == "") != (s.Key == ""):
		return fmt.Errorf("%s and %s belong together", n.Cert, n.Key)
	case s.SASL == "" && s.User+s.PasswordFile != "":
		return fmt.Errorf("%s and %s need %s", n.User, n.PasswordFile, n.SASL)
	case s.SASL != "" && !slices.Contains(Mechanisms, s.SASL):
		return fmt.Errorf("%s: no such mechanism: %q; there are: %s", n.SASL, s.SASL, strings.Join(Mechanisms, ", "))
	case s.SASL != "" && (s.User == "" || s.PasswordFile == ""):
		return fmt.Errorf("%s needs %s and %s", n.SASL, n.User, n.PasswordFile)
	}
	return nil
}

// Options returns the options of a client with a name, which brokers log. The settings must be valid.
func (s Settings) Options(client string, n Names) (kafka.Options, error) {
	o := kafka.Options{Brokers: s.Brokers, ClientID: client}
	if !s.Plaintext {
		var err error
		if o.TLS, err = s.tls(n); err != nil {
			return o, err
		}
	}
	if s.SASL == "" {
		return o, nil
	}
	mechanism, err := kafka.Scram(s.SASL, s.User, func() (string, error) {
		text, err := os.ReadFile(s.PasswordFile)
		return strings.TrimRight(string(text), "\r\n"), err
	})
	o.SASL = mechanism
	return o, err
}

func (s Settings) tls(n Names) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.CA != "" {
		text, err := os.ReadFile(s.CA)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", n.CA, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: %s has no certificate in PEM", n.CA, s.CA)
		}
	}
	if s.Cert != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
			return &pair, err
		}
		if _, err := load(); err != nil {
			return nil, fmt.Errorf("read %s and %s: %w", n.Cert, n.Key, err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return config, nil
}
