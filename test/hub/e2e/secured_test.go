package e2e_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/cmd/hub/agent"
	hubkafka "github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/howto"
	"github.com/godwit-dev/godwit/test/kafka"
)

// secured is a broker with the configuration, the users and the ACLs of docs/guides/secure-the-broker.md, between hub1 and hub2.
type secured struct {
	dir string
	// Ports of the guide, and of a listener whose certificate has expired.
	certificates, passwords, expired string
	authority                        tls.Certificate
	roots                            *x509.CertPool
}

const (
	passwordOfManager = "manager-secret"
	replacedOfManager = "manager-secret-2"
	passwordOfHub2    = "hub2-secret"
)

// secure runs the guide.
func secure(t *testing.T) *secured {
	t.Helper()
	s := &secured{dir: t.TempDir()}
	for _, port := range []*string{&s.certificates, &s.passwords, &s.expired} {
		address, err := controlplane.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		if _, *port, err = net.SplitHostPort(address); err != nil {
			t.Fatal(err)
		}
	}
	if err := kafka.WriteTools(s.dir); errors.Is(err, kafka.ErrMissing) && !kafka.Required() {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	commands, err := howto.Run(t.Context(), howto.Guide{
		File: filepath.Join("..", "..", "..", "docs", "guides", "secure-the-broker.md"), Dir: s.dir,
		Env: append(os.Environ(), "PATH="+s.dir+":"+os.Getenv("PATH")),
		Placeholders: map[string]string{
			"FROM": "hub1", "TO": "hub2", "BROKER": "localhost", "FOLDER": s.dir, "KAFKA": "kafka", "9093": s.certificates, "9094": s.passwords,
			"MANAGER_PASSWORD": passwordOfManager, "NEW_PASSWORD": replacedOfManager, "TO_PASSWORD": passwordOfHub2,
		},
		Written: func(name string) error {
			if name != "server.properties" {
				return nil
			}
			return s.start(t)
		},
	})
	if err != nil || commands < 19 {
		t.Fatalf("%d commands ran: %v", commands, err)
	}
	return s
}

// start starts a broker with the lines of the guide, and a listener whose certificate has expired.
func (s *secured) start(t *testing.T) error {
	var err error
	if s.authority, err = tls.LoadX509KeyPair(filepath.Join(s.dir, "ca.crt"), filepath.Join(s.dir, "ca.key")); err != nil {
		return err
	}
	s.roots = x509.NewCertPool()
	s.roots.AddCert(s.authority.Leaf)
	old := sign(t, s.authority, func(c *x509.Certificate) { c.DNSNames = []string{"localhost"} }, expires(-time.Hour))
	key, err := x509.MarshalPKCS8PrivateKey(old.PrivateKey)
	if err != nil {
		return err
	}
	store := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: old.Certificate[0]})...)
	if err := os.WriteFile(filepath.Join(s.dir, "expired.pem"), store, 0o600); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "server.properties"))
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	for i, line := range lines {
		switch name, _, _ := strings.Cut(line, "="); name {
		case "listeners":
			lines[i] += ",EXPIRED://localhost:" + s.expired
		case "listener.security.protocol.map":
			lines[i] += ",EXPIRED:SSL"
		}
	}
	startBroker(t, kafka.Options{Properties: append(lines, "listener.name.expired.ssl.keystore.location="+filepath.Join(s.dir, "expired.pem"))})
	return nil
}

func expires(in time.Duration) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Now().Add(in-time.Hour), time.Now().Add(in) }
}

// sign returns a certificate of hub1, with changes.
func sign(t *testing.T, by tls.Certificate, changes ...func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "hub1"}}
	for _, change := range append([]func(*x509.Certificate){expires(time.Hour)}, changes...) {
		change(c)
	}
	parent, signer := by.Leaf, by.PrivateKey
	if parent == nil {
		parent, signer = c, crypto.PrivateKey(key)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func connect(t *testing.T, broker string, o hubkafka.Options) *hubkafka.Transport {
	t.Helper()
	o.Brokers = []string{broker}
	if o.DeliveryTimeout == 0 {
		o.DeliveryTimeout = patience
	}
	transport, err := hubkafka.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	return transport
}

func (s *secured) withPassword(t *testing.T, user, password string) *hubkafka.Transport {
	t.Helper()
	return connect(t, "localhost:"+s.passwords, hubkafka.Options{
		ClientID: user, TLS: &tls.Config{RootCAs: s.roots}, SASL: scram.Auth{User: user, Pass: password}.AsSha512Mechanism(),
	})
}

func (s *secured) hub1(t *testing.T) *hubkafka.Transport {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(s.dir, "hub1.crt"), filepath.Join(s.dir, "hub1.key"))
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, "localhost:"+s.certificates, hubkafka.Options{ClientID: "hub1", TLS: &tls.Config{RootCAs: s.roots, Certificates: []tls.Certificate{pair}}})
}

// readOne reads a topic until its first message, which it handles, or until the broker refuses.
func readOne(t *testing.T, tr *hubkafka.Transport, group, topic string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got := false
	err := tr.Receive(ctx, group, []string{topic}, func(context.Context, string, message.Envelope) error {
		got = true
		cancel()
		return nil
	})
	if got {
		return nil
	}
	return err
}

func write(t *testing.T, tr *hubkafka.Transport, topic string) error {
	t.Helper()
	return tr.Send(t.Context(), topic, "migration", envelope("x", 100))
}

// TestSecuredBroker runs each command of docs/guides/secure-the-broker.md with Apache Kafka. Its users then do all that a migration needs, and
// nothing else: a missing ACL and a certificate that one side does not accept are errors that say what to do.
//
// The KafkaUsers of Strimzi can't be applied here, since they need its operator. They are compared with the ACLs of the broker.
//
// Matrix: H111, H117, H124.
func TestSecuredBroker(t *testing.T) {
	s := secure(t)
	mgr, hub1, hub2 := s.withPassword(t, "manager", replacedOfManager), s.hub1(t), s.withPassword(t, "hub2", passwordOfHub2)
	spec1, status1, toHub2 := message.SpecTopic("hub1"), message.StatusTopic("hub1"), message.MigrationTopic("hub2")
	if err := mgr.EnsureTopics(t.Context(), spec1, status1, message.SpecTopic("hub2"), message.StatusTopic("hub2"), message.MigrationTopic("hub1"), toHub2); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"the manager commands hub1", func() error { return write(t, mgr, spec1) }},
		{"hub1 reads the command", func() error { return readOne(t, hub1, agent.CommandGroup("hub1"), spec1) }},
		{"hub1 reports", func() error { return write(t, hub1, status1) }},
		{"the manager reads the report", func() error { return readOne(t, mgr, manager.Group("hub1"), status1) }},
		{"the manager sees that it has read it", func() error { return mgr.AwaitCaughtUp(t.Context(), manager.Group("hub1"), status1) }},
		{"the manager commands hub2", func() error { return write(t, mgr, message.SpecTopic("hub2")) }},
		{"hub2 reads the command", func() error { return readOne(t, hub2, agent.CommandGroup("hub2"), message.SpecTopic("hub2")) }},
		{"hub1 sends resources", func() error { return write(t, hub1, toHub2) }},
		{"hub2 reads them", func() error { return readOne(t, hub2, agent.ResourceGroup("hub2"), toHub2) }},
		{"hub2 reports", func() error { return write(t, hub2, message.StatusTopic("hub2")) }},
		{"the manager reads that report", func() error { return readOne(t, mgr, manager.Group("hub2"), message.StatusTopic("hub2")) }},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
	}
	t.Run("ACL", func(t *testing.T) { s.mustForbid(t, hub1, hub2) })
	t.Run("Certificate", func(t *testing.T) { s.mustRefuseCertificates(t) })
	t.Run("Strimzi", func(t *testing.T) {
		for user, file := range map[string]string{"hub1": "kafkauser-source.yaml", "manager": "kafkauser-manager.yaml"} {
			if diff := cmp.Diff(s.allowed(t, user), s.kafkaUser(t, file)); diff != "" {
				t.Errorf("ACLs of %s (-broker +KafkaUser):\n%s", user, diff)
			}
		}
	})
}

// mustForbid fails the test unless the broker refuses each hub what is the other one's.
func (s *secured) mustForbid(t *testing.T, hub1, hub2 *hubkafka.Transport) {
	for name, c := range map[string]struct {
		do   func() error
		want string
	}{
		"AnotherHubsReports":  {func() error { return write(t, hub2, "godwit.hub.hub1.status") }, "hub2 write topic godwit.hub.hub1.status: add an ACL that allows its user Write on this topic"},
		"OwnCommands":         {func() error { return write(t, hub1, "godwit.hub.hub1.spec") }, "hub1 write topic godwit.hub.hub1.spec: add an ACL"},
		"AnotherSource":       {func() error { return write(t, hub2, "godwit.migration.hub1") }, "hub2 write topic godwit.migration.hub1: add an ACL"},
		"AnotherHubsCommands": {func() error { return readOne(t, hub2, "godwit-agent-hub2-commands", "godwit.hub.hub1.spec") }, "hub2 read topic godwit.hub.hub1.spec: add an ACL that allows its user Read on this topic"},
		"AnotherHubsGroup":    {func() error { return readOne(t, hub1, "godwit-agent-hub2-commands", "godwit.hub.hub1.spec") }, "hub1 read topic godwit.hub.hub1.spec: add an ACL that allows its user Read on group godwit-agent-hub2-commands"},
		"NewTopic":            {func() error { return hub1.EnsureTopics(t.Context(), "godwit.hub.hub3.spec") }, "hub1 create topic godwit.hub.hub3.spec: add an ACL that allows its user Create on this topic"},
		"ReplacedPassword": {func() error {
			return readOne(t, s.withPassword(t, "manager", passwordOfManager), manager.Group("hub1"), "godwit.hub.hub1.status")
		}, "manager read topic godwit.hub.hub1.status: correct its user or password"},
		"WrongPassword": {func() error {
			return readOne(t, s.withPassword(t, "hub2", "wrong"), "godwit-agent-hub2-commands", "godwit.hub.hub2.spec")
		}, "hub2 read topic godwit.hub.hub2.spec: correct its user or password"},
		"WrongPasswordOfWriter": {func() error {
			return write(t, s.withPassword(t, "hub2", "wrong"), "godwit.hub.hub2.status")
		}, "hub2 write topic godwit.hub.hub2.status: correct its user or password"},
	} {
		err := c.do()
		if f := (*hubkafka.ForbiddenError)(nil); !errors.As(err, &f) || !strings.Contains(err.Error(), " does not let "+c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// mustRefuseCertificates fails the test unless each certificate that is not right is an error of reader and writer.
func (s *secured) mustRefuseCertificates(t *testing.T) {
	ours := sign(t, s.authority)
	stranger := sign(t, tls.Certificate{}, func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true })
	strangers := x509.NewCertPool()
	strangers.AddCert(stranger.Leaf)
	for name, c := range map[string]struct {
		broker      string
		roots       *x509.CertPool
		certificate tls.Certificate
		cause, do   string
	}{
		"WrongName":     {"127.0.0.1:" + s.certificates, s.roots, ours, "x509", "name the broker as its certificate does"},
		"ExpiredBroker": {"localhost:" + s.expired, s.roots, ours, "x509: certificate has expired", "renew the certificate of the broker"},
		"UnknownCA":     {"localhost:" + s.certificates, strangers, ours, "x509: certificate signed by unknown authority", "configure the CA"},
		"ExpiredClient": {"localhost:" + s.certificates, s.roots, sign(t, s.authority, expires(-time.Hour)), "remote error: tls", "the broker refuses the client certificate"},
		"OtherClient":   {"localhost:" + s.certificates, s.roots, sign(t, stranger), "remote error: tls", "the broker refuses the client certificate"},
		"NoClient":      {"localhost:" + s.certificates, s.roots, tls.Certificate{}, "remote error: tls", "the broker refuses the client certificate"},
	} {
		config := &tls.Config{RootCAs: c.roots}
		if c.certificate.Leaf != nil {
			// A client leaves a certificate out that the broker's list of CAs does not name, unless it is given in this way.
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c.certificate, nil }
		}
		tr := connect(t, c.broker, hubkafka.Options{ClientID: "hub1", TLS: config, DeliveryTimeout: 3 * time.Second})
		for operation, err := range map[string]error{
			"write": write(t, tr, "godwit.hub.hub1.status"),
			"read":  readOne(t, tr, "godwit-agent-hub1-commands", "godwit.hub.hub1.spec"),
		} {
			refused := (*hubkafka.TLSError)(nil)
			if !errors.As(err, &refused) || refused.Broker != c.broker || !strings.Contains(err.Error(), c.cause) || !strings.Contains(err.Error(), c.do) {
				t.Errorf("%s: %s: %v, want broker %s, %q and %q", name, operation, err, c.broker, c.cause, c.do)
			}
		}
	}
}

var (
	listedResource  = regexp.MustCompile(`resourceType=(\w+), name=(\S+), patternType=(\w+)\)`)
	listedOperation = regexp.MustCompile(`operation=(\w+), permissionType=ALLOW`)
)

// allowed returns the ACLs of a user, as the broker lists them.
func (s *secured) allowed(t *testing.T, user string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), filepath.Join(s.dir, "kafka-acls.sh"),
		"--bootstrap-server", "localhost:"+s.certificates, "--command-config", "admin.properties", "--list", "--principal", "User:"+user)
	list.Dir = s.dir
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	var resource []string
	for line := range strings.SplitSeq(string(out), "\n") {
		if found := listedResource.FindStringSubmatch(line); found != nil {
			resource = found
		}
		if found := listedOperation.FindStringSubmatch(line); found != nil {
			all = append(all, acl(resource[1], strings.TrimSuffix(resource[3], "ED"), resource[2], found[1]))
		}
	}
	slices.Sort(all)
	return all
}

// acl returns the text of an ACL by which those of Kafka and Strimzi are compared: Kafka's DESCRIBE_CONFIGS is Strimzi's DescribeConfigs.
func acl(kind, pattern, name, operation string) string {
	return strings.ToLower(fmt.Sprintf("%s %s %s ", kind, pattern, name) + strings.ReplaceAll(operation, "_", ""))
}

// kafkaUser returns the same of a KafkaUser that the guide shows in a file.
func (s *secured) kafkaUser(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	var u struct {
		Spec struct {
			Authorization struct {
				ACLs []struct {
					Resource   struct{ Type, Name, PatternType string }
					Operations []string
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &u); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, a := range u.Spec.Authorization.ACLs {
		for _, operation := range a.Operations {
			all = append(all, acl(a.Resource.Type, a.Resource.PatternType, a.Resource.Name, operation))
		}
	}
	slices.Sort(all)
	return all
}
