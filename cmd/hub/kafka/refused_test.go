package kafka

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return authority{cert, key, pool}
}

// sign returns a certificate for 127.0.0.1 that the change may spoil.
func (a authority) sign(t *testing.T, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "hub1"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestHandshakes: a broker with which TLS has failed counts until it answers, or until no client has dialled it for a while.
func TestHandshakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &handshakes{}
		gone, back := kgo.BrokerMetadata{Host: "a", Port: 1}, kgo.BrokerMetadata{Host: "b", Port: 1}
		for _, broker := range []kgo.BrokerMetadata{back, gone} {
			h.OnBrokerConnect(broker, 0, nil, x509.UnknownAuthorityError{})
		}
		mustFail := func(when, want string) {
			t.Helper()
			if broker, err := h.failure(time.Minute); broker != want || (err != nil) != (want != "") {
				t.Errorf("%s: %q, %v, want %q", when, broker, err, want)
			}
		}
		mustFail("both fail", "a:1")
		time.Sleep(time.Minute + time.Second)
		h.OnBrokerConnect(back, 0, nil, x509.UnknownAuthorityError{})
		mustFail("one was not dialled again", "b:1")
		h.OnBrokerConnect(back, 0, nil, errors.New("connection refused"))
		mustFail("the other does not answer", "b:1")
		h.OnBrokerConnect(back, 0, nil, kerr.SaslAuthenticationFailed)
		mustFail("the other refuses the password", "b:1")
		h.OnBrokerConnect(back, 0, nil, nil)
		mustFail("the other answers", "")
	})
}

// TestTLS: a certificate that one side does not accept is one error of each operation, with the broker, the cause and what to do.
//
// Matrix: H111.
func TestTLS(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	expired := func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	}
	elsewhere := func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"kafka.example.com"} }
	client := []tls.Certificate{ca.sign(t, nil)}
	for name, c := range map[string]struct {
		broker   tls.Certificate
		client   []tls.Certificate
		roots    *x509.CertPool
		cause    string
		remedies string
	}{
		"WrongName":           {ca.sign(t, elsewhere), client, ca.pool, "127.0.0.1", "name the broker as its certificate does"},
		"ExpiredBroker":       {ca.sign(t, expired), client, ca.pool, "expired", "renew the certificate of the broker"},
		"UnknownCA":           {ca.sign(t, nil), client, other.pool, "unknown authority", "configure the CA that has signed"},
		"ExpiredClient":       {ca.sign(t, nil), []tls.Certificate{ca.sign(t, expired)}, ca.pool, "expired", "the broker refuses the client certificate"},
		"ClientOfAnotherCA":   {ca.sign(t, nil), []tls.Certificate{other.sign(t, nil)}, ca.pool, "tls:", "the broker refuses the client certificate"},
		"NoClientCertificate": {ca.sign(t, nil), nil, ca.pool, "certificate required", "the broker refuses the client certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := newBroker(t, kfake.SeedTopics(1, topic), kfake.TLS(&tls.Config{
				Certificates: []tls.Certificate{c.broker}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool,
			}))
			transport := newTransport(t, Options{TLS: &tls.Config{RootCAs: c.roots, Certificates: c.client}, DeliveryTimeout: 2 * time.Second}, broker)
			for operation, err := range map[string]error{
				"read":   transport.Receive(bounded(t), group, []string{topic}, func(context.Context, string, message.Envelope) error { return nil }),
				"write":  transport.Send(bounded(t), topic, "migration", text("x")),
				"create": transport.EnsureTopics(bounded(t), topic),
			} {
				var refused *TLSError
				if !errors.As(err, &refused) || refused.Broker != broker.ListenAddrs()[0] {
					t.Fatalf("%s: %v, want an error of TLS with the broker", operation, err)
				}
				for _, want := range []string{operation + " topic " + topic + ": connect to broker " + refused.Broker, c.cause, c.remedies} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %v, want %q", operation, err, want)
					}
				}
			}
		})
	}
}
