package hub_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/csr"
	"github.com/godwit-dev/godwit/cmd/hub/target"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

// account is the bootstrap account of a migration, as a client with its token uses it.
type account struct {
	site
	token client.Client
}

// grant does what GrantRegistration and IssueToken do for a migration.
func (s site) grant(hub target.Hub) account {
	s.t.Helper()
	if _, err := s.validate(); err != nil {
		s.t.Fatal(err)
	}
	if _, err := hub.GrantRegistration(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	token, err := hub.IssueToken(s.t.Context(), time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		hub.Denied = nil
		if err := hub.RevokeRegistration(context.WithoutCancel(s.t.Context())); err != nil {
			s.t.Error(err)
		}
	})
	config := rest.AnonymousClientConfig(shared.Config())
	config.BearerToken = token
	s.mayRegister(token, true)
	return account{s, hubClient(s.t, config)}
}

// request creates a CertificateSigningRequest for a cluster with the token.
func (a account) request(name, clusterName string, change ...func(*certificatesv1.CertificateSigningRequest)) string {
	a.t.Helper()
	r, err := klusterlet.NewSigningRequest(name, clusterName)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, c := range change {
		c(r)
	}
	err = a.token.Create(a.t.Context(), r)
	for deadline := time.Now().Add(patience); apierrors.IsForbidden(err) && time.Now().Before(deadline); {
		pause(a.t.Context(), 100*time.Millisecond) // an authorizer reads a role later than a client
		err = a.token.Create(a.t.Context(), r)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = a.c.Delete(context.WithoutCancel(a.t.Context()), r) }) // an action may have deleted it
	return r.Name
}

// decision returns the type and the reason of the only condition of a request, or "".
func (s site) decision(name string) string {
	s.t.Helper()
	r := &certificatesv1.CertificateSigningRequest{}
	if err := s.c.Get(s.t.Context(), client.ObjectKey{Name: name}, r); err != nil {
		s.t.Fatal(err)
	}
	if len(r.Status.Conditions) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s", r.Status.Conditions[0].Type, r.Status.Conditions[0].Reason)
}

const (
	approved = string(certificatesv1.CertificateApproved) + " " + csr.ApprovedByMigration
	denied   = string(certificatesv1.CertificateDenied) + " " + csr.DeniedByMigration
)

// TestRequests: with the bootstrap token, only the clusters that move get a certificate, and only until they have joined. Requests for
// other identities are denied and reported, in each pass and by the next process too. Requests of others, and of another
// migration that shares the account, are left alone.
//
// Matrix: H96.
func TestRequests(t *testing.T) {
	t.Parallel()
	prod, other := newSite(t), newSite(t) // clusters of the target hub
	s, arrived := moving(t)
	s.done(s.receive(s.c, arrived))
	hub, second := s.target(s.c), s.target(s.c)
	second.UID = "uid-of-" + other.name
	mc := other.cluster()
	if err := cluster.Patch(t.Context(), s.c, mc, func() error { cluster.MarkOwned(mc, second.UID, "content"); return nil }); err != nil {
		t.Fatal(err)
	}
	a := s.grant(hub)
	s.grant(second)
	var reported []string
	hub.Denied = func(requests []string) { reported = requests }
	clusters := []string{s.name}
	pass := func() {
		t.Helper()
		reported = nil
		if _, err := hub.AwaitRegistration(t.Context(), clusters, &cluster.Leases{}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what, name, decision string) {
		t.Helper()
		if got := s.decision(name); got != decision {
			t.Errorf("%s: %q, want %q", what, got, decision)
		}
	}

	theft := a.request(s.name+"-theft", prod.name)
	masters := a.request(s.name+"-masters", s.name, func(r *certificatesv1.CertificateSigningRequest) {
		r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth)
		r.Spec.SignerName = "example.com/signer"
	})
	early, sharing := a.request(s.name+"-early", s.name), a.request(s.name+"-sharing", other.name)
	foreign := s.signing(s.name + "-foreign").Name
	pass()
	want("a cluster that the hub has", theft, denied)
	want("another signer is not the migration's", masters, "")
	want("a cluster that the hub does not accept yet", early, "")
	want("a cluster of another migration with the account", sharing, "")
	want("a request of an administrator", foreign, "")
	if len(reported) != 1 || !strings.Contains(reported[0], theft) || !strings.Contains(reported[0], prod.name) {
		t.Errorf("reported is %q", reported)
	}

	s.done(func() (cluster.Result, error) { return hub.AcceptClusters(t.Context(), clusters) })
	pass()
	want("the cluster that moves", early, approved)
	if len(reported) != 1 {
		t.Errorf("an earlier denial is reported no more: %q", reported)
	}
	s.renewLease()
	s.register()
	late := a.request(s.name+"-late", s.name)
	pass()
	want("a cluster that has joined", late, denied)
	if len(reported) != 2 || !slices.ContainsFunc(reported, func(text string) bool { return strings.Contains(text, late) }) {
		t.Errorf("reported is %q", reported)
	}

	last := a.request(s.name+"-last", prod.name)
	reported = nil
	if err := hub.RevokeRegistration(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("a request before the end", last, denied)
	if len(reported) != 3 {
		t.Errorf("at the end, %q are reported", reported)
	}
	want("a cluster of the other migration, after the end of this one", sharing, "")
}

// TestCertificateOfReturned: a cluster that returns has left a certificate at the target, which is reported with its expiry.
//
// Matrix: H97, H140.
func TestCertificateOfReturned(t *testing.T) {
	t.Parallel()
	s, arrived := moving(t)
	s.done(s.receive(s.c, arrived))
	hub, clusters := s.target(s.c), []string{s.name}
	issued := map[string]time.Time{}
	hub.Issued = func(name string, expiry time.Time) { issued[name] = expiry }
	stop := func() (cluster.Result, error) { return hub.StopAccepting(t.Context(), clusters) }
	s.done(stop)
	if len(issued) > 0 {
		t.Errorf("a cluster without a certificate: %v", issued)
	}
	s.done(func() (cluster.Result, error) { return hub.AcceptClusters(t.Context(), clusters) })
	a := s.grant(hub)
	name := a.request(s.name+"-1", s.name)
	if _, err := hub.AwaitRegistration(t.Context(), clusters, &cluster.Leases{}); err != nil {
		t.Fatal(err)
	}
	expires := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	s.sign(name, expires)
	for action, pass := range map[string]func() error{
		"AwaitRegistration": func() error {
			_, err := hub.AwaitRegistration(t.Context(), clusters, &cluster.Leases{})
			return err
		},
		"RevokeRegistration": func() error { return hub.RevokeRegistration(t.Context()) },
	} {
		clear(issued)
		if err := pass(); err != nil || !issued[s.name].Equal(expires) {
			t.Errorf("%s: the certificate expires at %s, want %s, %v", action, issued[s.name], expires, err)
		}
	}
	clear(issued)
	s.done(stop)
	if got := issued[s.name]; !got.Equal(expires) {
		t.Errorf("the certificate expires at %s, want %s", got, expires)
	}
}

// sign plays the signer of the hub, which issues a certificate.
func (s site) sign(name string, expires time.Time) {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: expires}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		s.t.Fatal(err)
	}
	r := &certificatesv1.CertificateSigningRequest{}
	if err := s.c.Get(s.t.Context(), client.ObjectKey{Name: name}, r); err != nil {
		s.t.Fatal(err)
	}
	r.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := s.c.Status().Update(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
}
