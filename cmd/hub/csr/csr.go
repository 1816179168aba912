// Package csr decides about the CertificateSigningRequests of the account by whose token the clusters of a migration register at their new
// hub. The source hub has this token. So a request gets a certificate only if it is exactly that of a cluster which moves: the signer, the
// usages, the subject, and a cluster that the migration has created and accepted, and that has not joined yet. The package does no I/O.
package csr

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// Signer is the signer of the certificates of clusters. It also signs those of the hub's administrators.
const Signer = certificatesv1.KubeAPIServerClientSignerName

// Parts of the subject that the registration agent of Open Cluster Management requests.
const (
	subjectPrefix = "system:open-cluster-management:"
	// commonGroup is a group of all clusters. An agent may leave it out.
	commonGroup = subjectPrefix + "managed-clusters"
)

// Reasons of the conditions with which the agent of a target hub decides about a request.
const (
	// ApprovedByMigration means that the request is that of a cluster which moves.
	ApprovedByMigration = "MovesByMigration"
	// DeniedByMigration means that the account has requested another identity than that of a cluster which moves.
	DeniedByMigration = "NotOfMigration"
)

// Action is what the agent of the target hub does about a request.
type Action string

// Actions.
const (
	// Leave means that the request is not for this migration to decide, or not yet.
	Leave Action = "Leave"
	// Approve means that the request is that of a cluster which moves.
	Approve Action = "Approve"
	// Deny means that the request is for another identity: the token is stolen, or used for a cluster that does not move.
	Deny Action = "Deny"
)

// Decision is what is decided about a request.
type Decision struct {
	Action Action
	// Why is the reason, for the message of the condition.
	Why string
}

// Cluster is what the target hub has of a managed cluster.
type Cluster struct {
	// Migration is the UID of the migration that has created the ManagedCluster, and that has not ended for it; empty without one.
	Migration string
	// Accepts means that the hub accepts the cluster.
	Accepts bool
	// Joined means that the cluster has its certificate.
	Joined bool
}

// Facts are what a decision depends on, beside the request.
type Facts struct {
	// User is the name of the account by whose token the clusters of the migration register.
	User string
	// Migration is the UID of the migration.
	Migration string
	// Sharing are the UIDs of all migrations that use the account.
	Sharing []string
	// Awaits are the clusters whose registration the migration awaits.
	Awaits []string
	// Clusters are the clusters that the hub has, of those that [ClusterOf] returns.
	Clusters map[string]Cluster
}

// IsOf reports whether a user has made a request.
func IsOf(r *certificatesv1.CertificateSigningRequest, user string) bool {
	return user != "" && r.Spec.Username == user
}

// IsPending reports whether no condition decides about a request, and it has no certificate.
func IsPending(r *certificatesv1.CertificateSigningRequest) bool {
	return len(r.Status.Conditions) == 0 && len(r.Status.Certificate) == 0
}

// Decide decides about a request.
func Decide(r *certificatesv1.CertificateSigningRequest, f Facts) Decision {
	if !IsOf(r, f.User) || !IsPending(r) {
		return Decision{Action: Leave}
	}
	name, err := ClusterOf(r)
	if err != nil {
		return Decision{Deny, err.Error()}
	}
	c, exists := f.Clusters[name]
	switch {
	case !exists:
		return Decision{Deny, "it is for cluster " + name + ", which the hub does not have"}
	case c.Migration != f.Migration && c.Migration != "" && slices.Contains(f.Sharing, c.Migration):
		return Decision{Leave, "another migration moves cluster " + name}
	case c.Migration != f.Migration || f.Migration == "":
		return Decision{Deny, "it is for cluster " + name + ", which does not move"}
	case c.Joined:
		return Decision{Deny, "it is for cluster " + name + ", which has its certificate already"}
	case !c.Accepts || !slices.Contains(f.Awaits, name):
		return Decision{Leave, "the migration does not await the registration of cluster " + name}
	}
	return Decision{Approve, "it is for cluster " + name + ", which moves"}
}

// Condition returns the condition that carries a decision out. Its message names the migration.
func Condition(d Decision, migration string) certificatesv1.CertificateSigningRequestCondition {
	c := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: ApprovedByMigration,
		Message: d.Why + ofMigration + migration,
	}
	if d.Action == Deny {
		c.Type, c.Reason = certificatesv1.CertificateDenied, DeniedByMigration
	}
	return c
}

// ofMigration precedes the UID at the end of the message of a condition.
const ofMigration = "; migration "

// DeniedBy returns why a migration has denied a request, or false if it has not.
func DeniedBy(r *certificatesv1.CertificateSigningRequest, migration string) (why string, denied bool) {
	for _, c := range r.Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied && c.Reason == DeniedByMigration {
			return strings.CutSuffix(c.Message, ofMigration+migration)
		}
	}
	return "", false
}

// ClusterOf returns the cluster whose agent a request identifies. It returns an error unless the request is exactly one with which a
// registration agent registers its cluster, so that the certificate has no other name or group.
func ClusterOf(r *certificatesv1.CertificateSigningRequest) (string, error) {
	if r.Spec.SignerName != Signer {
		return "", fmt.Errorf("it is for signer %q, and a cluster registers with %s", r.Spec.SignerName, Signer)
	}
	allowed := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth}
	for _, u := range r.Spec.Usages {
		if !slices.Contains(allowed, u) {
			return "", fmt.Errorf("it is for usage %q", u)
		}
	}
	if !slices.Contains(r.Spec.Usages, certificatesv1.UsageClientAuth) {
		return "", fmt.Errorf("it is not for usage %q", certificatesv1.UsageClientAuth)
	}
	request, err := parse(r.Spec.Request)
	if err != nil {
		return "", err
	}
	name, err := subject(request)
	if err != nil {
		return "", err
	}
	if label := r.Labels[clusterv1.ClusterNameLabelKey]; label != name {
		return "", fmt.Errorf("it is for cluster %s, and its label %s says %q", name, clusterv1.ClusterNameLabelKey, label)
	}
	return name, nil
}

const requestBlock = "CERTIFICATE REQUEST"

// parse reads the request of a certificate, which must be signed with its own key and have no name beside its subject.
func parse(text []byte) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != requestBlock || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, errors.New("it has not exactly one PEM block " + requestBlock)
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, errors.New("its certificate request can't be read")
	}
	if err := request.CheckSignature(); err != nil {
		return nil, errors.New("its certificate request is not signed with its own key")
	}
	if len(request.DNSNames)+len(request.EmailAddresses)+len(request.IPAddresses)+len(request.URIs)+len(request.Extensions) > 0 {
		return nil, errors.New("it asks for names or extensions beside its subject")
	}
	return request, nil
}

// Attributes of a subject: X.520, section 6.
var (
	attributeCommonName   = asn1.ObjectIdentifier{2, 5, 4, 3}
	attributeOrganization = asn1.ObjectIdentifier{2, 5, 4, 10}
)

// subject returns the cluster that a subject identifies.
func subject(request *x509.CertificateRequest) (string, error) {
	commonNames := 0
	for _, attribute := range request.Subject.Names {
		switch {
		case attribute.Type.Equal(attributeCommonName):
			commonNames++
		case !attribute.Type.Equal(attributeOrganization):
			return "", fmt.Errorf("its subject has attribute %s", attribute.Type)
		}
	}
	name, agent, found := strings.Cut(strings.TrimPrefix(request.Subject.CommonName, subjectPrefix), ":")
	if !strings.HasPrefix(request.Subject.CommonName, subjectPrefix) || commonNames != 1 || !found || name == "" || agent == "" || strings.Contains(agent, ":") {
		return "", fmt.Errorf("it is for user %q, which is not the agent of a cluster", request.Subject.CommonName)
	}
	groups := slices.DeleteFunc(slices.Clone(request.Subject.Organization), func(group string) bool { return group == commonGroup })
	if len(groups) != 1 || groups[0] != subjectPrefix+name {
		return "", fmt.Errorf("it is for cluster %s, and for groups %q", name, request.Subject.Organization)
	}
	return name, nil
}

// Expiry returns when the certificate of a request expires, or false if the request has none.
func Expiry(r *certificatesv1.CertificateSigningRequest) (time.Time, bool) {
	block, _ := pem.Decode(r.Status.Certificate)
	if block == nil {
		return time.Time{}, false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, false
	}
	return certificate.NotAfter, true
}
