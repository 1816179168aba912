package csr_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/godwit-dev/godwit/cmd/hub/csr"
)

const (
	account = "system:serviceaccount:open-cluster-management-agent-addon:godwit-migration-1"
	prefix  = "system:open-cluster-management:"
	group   = prefix + "managed-clusters"
)

// asked is a request as the registration agent of a cluster makes it, with changes.
type asked struct {
	cluster  string
	template func(*x509.CertificateRequest)
	request  func(*certificatesv1.CertificateSigningRequest)
}

func (a asked) make(tb testing.TB) *certificatesv1.CertificateSigningRequest {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: prefix + a.cluster + ":x7k2p", Organization: []string{prefix + a.cluster, group}}}
	if a.template != nil {
		a.template(template)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		tb.Fatal(err)
	}
	r := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: a.cluster + "-1", Labels: map[string]string{clusterv1.ClusterNameLabelKey: a.cluster}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: csr.Signer, Username: account,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}
	if a.request != nil {
		a.request(r)
	}
	return r
}

// facts are those of migration one, which awaits c1, has c2 on its way back, and shares its account with migration two.
func facts() csr.Facts {
	return csr.Facts{
		User: account, Migration: "one", Sharing: []string{"one", "two"}, Awaits: []string{"c1", "joined"},
		Clusters: map[string]csr.Cluster{
			"c1": {Migration: "one", Accepts: true}, "c2": {Migration: "one"}, "later": {Migration: "one", Accepts: true},
			"joined": {Migration: "one", Accepts: true, Joined: true}, "other": {Migration: "two", Accepts: true},
			"third": {Migration: "three", Accepts: true}, "prod": {Accepts: true, Joined: true}, "new": {Accepts: true},
		},
	}
}

// TestDecide: with the bootstrap token, only the clusters that move get a certificate.
//
// Matrix: H96.
func TestDecide(t *testing.T) {
	t.Parallel()
	subject := func(cn string, groups ...string) func(*x509.CertificateRequest) {
		return func(r *x509.CertificateRequest) { r.Subject = pkix.Name{CommonName: cn, Organization: groups} }
	}
	usages := func(all ...certificatesv1.KeyUsage) func(*certificatesv1.CertificateSigningRequest) {
		return func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Usages = all }
	}
	request := func(change func(text string) string) func(*certificatesv1.CertificateSigningRequest) {
		return func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Request = []byte(change(string(r.Spec.Request)))
		}
	}
	for name, test := range map[string]struct {
		reason string
		asked  asked
		facts  func(*csr.Facts)
		want   csr.Action
		why    string
	}{
		"Moving":        {"The agent of a cluster that moves.", asked{cluster: "c1"}, nil, csr.Approve, "c1"},
		"NoCommonGroup": {"OCM's agents may leave the common group out.", asked{cluster: "c1", template: subject(prefix+"c1:a", prefix+"c1")}, nil, csr.Approve, "c1"},
		"ClientAuth":    {"An agent that asks for less.", asked{cluster: "c1", request: usages(certificatesv1.UsageClientAuth)}, nil, csr.Approve, "c1"},

		"Existing":     {"The theft: a cluster that the hub has had before.", asked{cluster: "prod"}, nil, csr.Deny, "prod"},
		"Imported":     {"A cluster that a user imports now.", asked{cluster: "new"}, nil, csr.Deny, "new"},
		"Unknown":      {"A cluster that the hub does not have.", asked{cluster: "nowhere"}, nil, csr.Deny, "nowhere"},
		"OtherAccount": {"A cluster of a migration from another hub.", asked{cluster: "third"}, nil, csr.Deny, "third"},
		"AlreadyHas":   {"A cluster that has joined, for a second certificate.", asked{cluster: "joined"}, nil, csr.Deny, "joined"},
		"Signer":       {"A certificate of another purpose.", asked{cluster: "c1", request: func(r *certificatesv1.CertificateSigningRequest) { r.Spec.SignerName = "example.com/any" }}, nil, csr.Deny, "example.com/any"},
		"KubeletSigner": {"The certificate of a kubelet.", asked{cluster: "c1", request: func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = certificatesv1.KubeAPIServerClientKubeletSignerName
		}}, nil, csr.Deny, "kubelet"},
		"ServerAuth":   {"A certificate of a server.", asked{cluster: "c1", request: usages(certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth)}, nil, csr.Deny, "server auth"},
		"NoClientAuth": {"A certificate that is of no use to an agent.", asked{cluster: "c1", request: usages(certificatesv1.UsageDigitalSignature)}, nil, csr.Deny, "client auth"},
		"Masters":      {"The group of administrators, beside that of the cluster.", asked{cluster: "c1", template: subject(prefix+"c1:a", prefix+"c1", "system:masters")}, nil, csr.Deny, "system:masters"},
		"MastersAlone": {"The group of administrators.", asked{cluster: "c1", template: subject("admin", "system:masters")}, nil, csr.Deny, "admin"},
		"OtherGroup":   {"The name of c1, and the group of prod.", asked{cluster: "c1", template: subject(prefix+"c1:a", prefix+"prod", group)}, nil, csr.Deny, "prod"},
		"BothGroups":   {"The groups of two clusters.", asked{cluster: "c1", template: subject(prefix+"c1:a", prefix+"c1", prefix+"prod", group)}, nil, csr.Deny, "prod"},
		"NoGroup":      {"No group.", asked{cluster: "c1", template: subject(prefix + "c1:a")}, nil, csr.Deny, "groups"},
		"OtherName":    {"The group of c1, and the name of prod.", asked{cluster: "c1", template: subject(prefix+"prod:a", prefix+"c1", group)}, nil, csr.Deny, "prod"},
		"NoAgent":      {"A name without an agent.", asked{cluster: "c1", template: subject(prefix+"c1:", prefix+"c1", group)}, nil, csr.Deny, "not the agent"},
		"AddOn":        {"The name of an add-on.", asked{cluster: "c1", template: subject(prefix+"cluster:c1:addon:work:agent:a", prefix+"cluster", group)}, nil, csr.Deny, "not the agent"},
		"NoPrefix":     {"The name of a user.", asked{cluster: "c1", template: subject("c1:a", prefix+"c1", group)}, nil, csr.Deny, "not the agent"},
		"OtherUnit": {"An attribute that may mean something to a proxy.", asked{cluster: "c1", template: func(r *x509.CertificateRequest) {
			r.Subject.OrganizationalUnit = []string{"u"}
		}}, nil, csr.Deny, "2.5.4.11"},
		"TwoNames": {"Two names, of which a reader may take either.", asked{cluster: "c1", template: func(r *x509.CertificateRequest) {
			r.Subject.ExtraNames = []pkix.AttributeTypeAndValue{
				{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: prefix + "prod:a"}, {Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: prefix + "c1:a"},
			}
		}}, nil, csr.Deny, "not the agent"},
		"DNSName":   {"A name of a server.", asked{cluster: "c1", template: func(r *x509.CertificateRequest) { r.DNSNames = []string{"prod"} }}, nil, csr.Deny, "names or extensions"},
		"IPAddress": {"An address.", asked{cluster: "c1", template: func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{{127, 0, 0, 1}} }}, nil, csr.Deny, "names or extensions"},
		"Extension": {"A constraint of a certificate authority.", asked{cluster: "c1", template: func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}}}
		}}, nil, csr.Deny, "names or extensions"},
		"NoLabel": {"Without its label it is not deleted with the cluster.", asked{cluster: "c1", request: func(r *certificatesv1.CertificateSigningRequest) { r.Labels = nil }}, nil, csr.Deny, "label"},
		"OtherLabel": {"The label of c1, and the subject of prod.", asked{cluster: "prod", request: func(r *certificatesv1.CertificateSigningRequest) {
			r.Labels[clusterv1.ClusterNameLabelKey] = "c1"
		}}, nil, csr.Deny, "label"},
		"TwoBlocks": {"A second request behind the first.", asked{cluster: "c1", request: request(func(text string) string { return text + text })}, nil, csr.Deny, "exactly one"},
		"NoBlock":   {"No request.", asked{cluster: "c1", request: request(func(string) string { return "" })}, nil, csr.Deny, "exactly one"},
		"OtherBlock": {"Another kind of block.", asked{cluster: "c1", request: request(func(text string) string {
			return strings.ReplaceAll(text, "CERTIFICATE REQUEST", "CERTIFICATE")
		})}, nil, csr.Deny, "exactly one"},
		"Broken": {"A block that is no request.", asked{cluster: "c1", request: request(func(string) string {
			return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("no")}))
		})}, nil, csr.Deny, "can't be read"},
		"OtherKey": {"A request whose key the sender does not have.", asked{cluster: "c1", request: func(r *certificatesv1.CertificateSigningRequest) {
			block, _ := pem.Decode(r.Spec.Request)
			block.Bytes[len(block.Bytes)-1] ^= 1
			r.Spec.Request = pem.EncodeToMemory(block)
		}}, nil, csr.Deny, "own key"},

		"OtherUser": {"A request of another account is its own matter.", asked{cluster: "prod", request: func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Username = "alice" }}, nil, csr.Leave, ""},
		"Approved": {"It is decided already.", asked{cluster: "prod", request: func(r *certificatesv1.CertificateSigningRequest) {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
		}}, nil, csr.Leave, ""},
		"Returning":    {"The hub does not accept the cluster any more.", asked{cluster: "c2"}, nil, csr.Leave, "c2"},
		"NotYet":       {"The command does not await the cluster.", asked{cluster: "later"}, nil, csr.Leave, "later"},
		"Sharing":      {"Another migration between the hubs moves the cluster.", asked{cluster: "other"}, nil, csr.Leave, "other"},
		"NoMigration":  {"A migration without a UID owns nothing.", asked{cluster: "new"}, func(f *csr.Facts) { f.Migration = "" }, csr.Deny, "new"},
		"NoUser":       {"Without an account, no request is of it.", asked{cluster: "c1", request: func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Username = "" }}, func(f *csr.Facts) { f.User = "" }, csr.Leave, ""},
		"NotSharedAny": {"A migration that has revoked its registration shares nothing.", asked{cluster: "other"}, func(f *csr.Facts) { f.Sharing = nil }, csr.Deny, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := facts()
			if test.facts != nil {
				test.facts(&f)
			}
			d := csr.Decide(test.asked.make(t), f)
			if d.Action != test.want || !strings.Contains(d.Why, test.why) {
				t.Errorf("%s %s: %s, want %s, with %q", test.reason, d.Action, d.Why, test.want, test.why)
			}
		})
	}
}

// TestConditions: a denial is found again by its condition alone, and that of another migration or of a user is not.
func TestConditions(t *testing.T) {
	t.Parallel()
	r := asked{cluster: "prod"}.make(t)
	r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{csr.Condition(csr.Decide(r, facts()), "one")}
	if why, denied := csr.DeniedBy(r, "one"); !denied || why != "it is for cluster prod, which does not move" {
		t.Errorf("denied %v: %q", denied, why)
	}
	if _, denied := csr.DeniedBy(r, "two"); denied {
		t.Error("migration two has not denied it")
	}
	r.Status.Conditions[0].Reason = "Policy"
	if _, denied := csr.DeniedBy(r, "one"); denied {
		t.Error("a user has denied it")
	}
	if c := csr.Condition(csr.Decision{Action: csr.Approve, Why: "w"}, "one"); c.Type != certificatesv1.CertificateApproved || c.Reason != csr.ApprovedByMigration {
		t.Errorf("an approval has condition %+v", c)
	}
}

// FuzzClusterOf: whatever the account sends, an approved request has exactly the names and the groups of the cluster.
func FuzzClusterOf(f *testing.F) {
	for _, a := range []asked{{cluster: "c1"}, {cluster: "prod"}, {cluster: "c1", template: func(r *x509.CertificateRequest) { r.DNSNames = []string{"a"} }}} {
		r := a.make(f)
		block, _ := pem.Decode(r.Spec.Request)
		f.Add(block.Bytes, a.cluster, string(csr.Signer))
	}
	f.Fuzz(func(t *testing.T, der []byte, label, signer string) {
		r := asked{cluster: "c1"}.make(t)
		r.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
		r.Labels[clusterv1.ClusterNameLabelKey], r.Spec.SignerName = label, signer
		name, err := csr.ClusterOf(r)
		if err != nil {
			if d := csr.Decide(r, facts()); d.Action == csr.Approve {
				t.Fatalf("approved: %v", err)
			}
			return
		}
		request, err := x509.ParseCertificateRequest(der)
		if err != nil {
			t.Fatal(err)
		}
		if name != label || signer != csr.Signer || !strings.HasPrefix(request.Subject.CommonName, prefix+name+":") {
			t.Fatalf("%q is the cluster of %v", name, request.Subject)
		}
		for _, o := range request.Subject.Organization {
			if o != prefix+name && o != group {
				t.Fatalf("group %q for cluster %q", o, name)
			}
		}
	})
}
