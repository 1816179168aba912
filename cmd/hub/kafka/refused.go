package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ForbiddenError means that the broker refuses a request because of a missing ACL or wrong credentials.
type ForbiddenError struct {
	// Client, Operation and Topic are the client ID, the refused operation, and the topic.
	Client, Operation, Topic string
	// Broker is host:port of the broker that refuses the credentials; empty if it is not known, or refuses something else.
	Broker string
	// Group is the consumer group of a refused read.
	Group string
	Err   error
}

func (e *ForbiddenError) Error() string {
	broker := "the broker"
	if e.Broker != "" {
		broker = "broker " + e.Broker
	}
	return fmt.Sprintf("%s does not let %s %s topic %s: %s: %v", broker, e.Client, e.Operation, e.Topic, e.remedy(), e.Err)
}

func (e *ForbiddenError) Unwrap() error { return e.Err }

// Operations on topics, as messages name them.
const (
	operationWrite    = "write"
	operationRead     = "read"
	operationCreate   = "create"
	operationDescribe = "read the configuration of"
	operationOffsets  = "read the offsets of"
	operationCommit   = "commit offsets of"
)

// operationACLs are the operations of ACLs that allow an operation on a topic.
var operationACLs = map[string]string{
	operationWrite: "Write", operationRead: "Read", operationCreate: "Create", operationDescribe: "DescribeConfigs",
	operationOffsets: "Describe", operationCommit: "Read",
}

func (e *ForbiddenError) remedy() string {
	switch {
	case errors.Is(e.Err, kerr.SaslAuthenticationFailed):
		return "correct its user or password"
	case errors.Is(e.Err, kerr.GroupAuthorizationFailed):
		return fmt.Sprintf("add an ACL that allows its user Read on group %s", e.Group)
	}
	return fmt.Sprintf("add an ACL that allows its user %s on this topic", operationACLs[e.Operation])
}

var forbidden = []error{
	kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.SaslAuthenticationFailed,
}

// TLSError means that a broker and the client do not agree on TLS: one does not accept the certificate of the other.
type TLSError struct {
	// Broker is the broker as host:port.
	Broker string
	// Remedy says what to do.
	Remedy string
	Err    error
}

func (e *TLSError) Error() string {
	return fmt.Sprintf("connect to broker %s: %v: %s", e.Broker, e.Err, e.Remedy)
}

func (e *TLSError) Unwrap() error { return e.Err }

// tlsRemedy says what to do about an error of TLS that a retry does not fix; empty for any other error.
func tlsRemedy(err error) string {
	var name x509.HostnameError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var alert *net.OpError // that the broker has sent
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &name):
		return "name the broker as its certificate does, or issue a certificate that has this name as subjectAltName"
	case errors.As(err, &authority):
		return "configure the CA that has signed the certificate of the broker"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew the certificate of the broker"
	case errors.As(err, &invalid):
		return "issue another certificate for the broker"
	case errors.As(err, &alert) && alert.Op == "remote error":
		return "the broker refuses the client certificate: configure one that is valid now, and signed by a CA that the broker trusts"
	case errors.As(err, &record):
		return "the port of the broker has no TLS: name its port for TLS"
	}
	return ""
}

// refuses reports whether a broker has refused a connection for a reason that a retry does not change.
func refuses(err error) bool {
	return errors.Is(err, kerr.SaslAuthenticationFailed) || tlsRemedy(err) != ""
}

// handshakes has the brokers that refuse the client, by TLS or because of its credentials. It observes the connections of a client.
type handshakes struct {
	mutex  sync.Mutex
	failed map[string]failedHandshake
	// next is closed with the next refusal.
	next chan struct{}
}

type failedHandshake struct {
	at  time.Time
	err error
}

var _ kgo.HookBrokerConnect = (*handshakes)(nil)

// OnBrokerConnect implements kgo.HookBrokerConnect. The error is also that of the authentication, which follows TLS.
func (h *handshakes) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	broker := net.JoinHostPort(meta.Host, strconv.Itoa(int(meta.Port)))
	h.mutex.Lock()
	defer h.mutex.Unlock()
	switch {
	case err == nil:
		delete(h.failed, broker)
	case refuses(err):
		if h.failed == nil {
			h.failed = map[string]failedHandshake{}
		}
		h.failed[broker] = failedHandshake{time.Now(), err}
		if h.next != nil {
			close(h.next)
			h.next = nil
		}
	}
}

// refusal returns a channel that is closed when a broker refuses the client next.
func (h *handshakes) refusal() <-chan struct{} {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.next == nil {
		h.next = make(chan struct{})
	}
	return h.next
}

// failure returns the error of the first broker, in the order of their names, that has refused the client within a time; nil if
// there is none. Older failures do not count: the broker may have left the cluster.
func (h *handshakes) failure(within time.Duration) (broker string, err error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, broker := range slices.Sorted(maps.Keys(h.failed)) {
		if f := h.failed[broker]; time.Since(f.at) <= within {
			return broker, f.err
		}
	}
	return "", nil
}
