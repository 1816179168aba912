package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/target"
)

// TestNotRegistered says why a cluster is not registered. It recommends no request of another user, for another signer or for another cluster, whatever
// label that has.
//
// Matrix: H37, H120.
func TestNotRegistered(t *testing.T) {
	t.Parallel()
	prod := newSite(t)
	s, arrived := moving(t)
	s.done(s.receive(s.c, arrived))
	await := func() (cluster.Result, error) {
		return s.target(s.c).AwaitRegistration(t.Context(), []string{s.name}, &cluster.Leases{})
	}
	s.mustFail(cluster.ReasonNotPrepared, "does not accept", await)
	s.done(func() (cluster.Result, error) { return s.target(s.c).AcceptClusters(t.Context(), []string{s.name}) })
	s.mustWait("has made no CertificateSigningRequest", await)
	foreign := s.signing(s.name + "-a")
	s.mustWait("CertificateSigningRequest "+foreign.Name+", of user", await)
	if r, err := await(); err != nil || strings.Contains(r.Waiting[s.name], "approve") {
		t.Errorf("the request of another user is recommended: %q, %v", r.Waiting, err)
	}
	foreign.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue}}
	if err := s.c.SubResource("approval").Update(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	a := s.grant(s.target(s.c))
	a.request(s.name+"-signer", s.name, func(r *certificatesv1.CertificateSigningRequest) { r.Spec.SignerName = "example.com/signer" })
	s.mustWait("has made no CertificateSigningRequest", await)
	a.request(s.name+"-other", prod.name)
	s.mustWait("has made no CertificateSigningRequest", await)

	r := &certificatesv1.CertificateSigningRequest{}
	name := a.request(s.name+"-b", s.name)
	s.mustWait("CertificateSigningRequest "+name+" is approved", await)
	if err := s.c.Delete(t.Context(), &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	if err := s.c.Get(t.Context(), client.ObjectKey{Name: a.request(s.name+"-c", s.name)}, r); err != nil {
		t.Fatal(err)
	}
	r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Message: "not today"}}
	if err := s.c.SubResource("approval").Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	s.mustFail(cluster.ReasonDenied, "not today", await)
}

// TestRegistration: two migrations with one account share what was granted, and change nothing of the ClusterManager. The last one
// removes exactly what was added, also what an earlier release has added to the ClusterManager, beside what users have.
//
// It runs alone: a hub has one ClusterManager.
func TestRegistration(t *testing.T) { //nolint:paralleltest // see above
	s := newSite(t)
	if _, err := s.validate(); err != nil {
		t.Fatal(err)
	}
	first, second := s.target(s.c), s.target(s.c)
	second.UID = "second"
	account := "system:serviceaccount:default:account-of-" + s.to
	manager := &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: "cluster-manager", Annotations: map[string]string{
		"godwit.dev/automatic-approval": fmt.Sprintf(`{"format":1,"users":{%q:[%q,%q]},"gate":"Disable"}`, account, first.UID, second.UID),
	}}}
	manager.Spec.RegistrationConfiguration = &operatorv1.RegistrationHubConfiguration{
		AutoApproveUsers: []string{"theirs", account},
		FeatureGates:     []operatorv1.FeatureGate{{Feature: "ManagedClusterAutoApproval", Mode: operatorv1.FeatureGateModeTypeEnable}},
	}
	s.create(manager)
	defer func() {
		if err := s.c.Delete(t.Context(), manager); err != nil {
			t.Error(err)
		}
	}()
	for _, hub := range []target.Hub{first, second} {
		if waits, err := hub.GrantRegistration(t.Context()); waits != "" || err != nil {
			t.Errorf("waits for %q, %v", waits, err)
		}
	}
	token, err := first.IssueToken(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s.mayRegister(token, true)
	if err := first.RevokeRegistration(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := s.clusterManager(); !slices.Contains(m.Spec.RegistrationConfiguration.AutoApproveUsers, account) {
		t.Error("the first migration has removed what the second one needs")
	}
	if err := second.RevokeRegistration(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := &operatorv1.RegistrationHubConfiguration{
		AutoApproveUsers: []string{"theirs"},
		FeatureGates:     []operatorv1.FeatureGate{{Feature: "ManagedClusterAutoApproval", Mode: operatorv1.FeatureGateModeTypeDisable}},
	}
	got := s.clusterManager()
	if diff := cmp.Diff(want, got.Spec.RegistrationConfiguration); diff != "" || len(got.Annotations) > 0 {
		t.Errorf("ClusterManager after all migrations (-want +got):\n%s%v", diff, got.Annotations)
	}
	s.mayRegister(token, false)
	// This release adds nothing.
	if _, err := first.GrantRegistration(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := s.clusterManager(); now.ResourceVersion != got.ResourceVersion {
		t.Errorf("GrantRegistration has changed the ClusterManager: %+v", now.Spec)
	}
	if err := first.RevokeRegistration(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestIssueToken: an API server may grant less than a day beyond the migration, and not less than the migration.
//
// Matrix: H25.
func TestIssueToken(t *testing.T) {
	t.Parallel()
	const needed = time.Hour
	for name, test := range map[string]struct {
		limit time.Duration
		want  time.Duration // zero: a failure
	}{
		"NoLimit":              {48 * time.Hour, needed + 24*time.Hour},
		"LessThanADayBeyond":   {2 * needed, 2 * needed},
		"TheMigrationAlone":    {needed, needed},
		"LessThanTheMigration": {needed - time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			config := rest.CopyConfig(shared.Config())
			c, err := client.NewWithWatch(config, client.Options{Scheme: hubScheme(), Mapper: hubMapper()})
			if err != nil {
				t.Fatal(err)
			}
			limited := interceptor.NewClient(c, interceptor.Funcs{
				SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, request client.Object, opts ...client.SubResourceCreateOption) error {
					r := request.(*authenticationv1.TokenRequest)
					granted := min(*r.Spec.ExpirationSeconds, int64(test.limit/time.Second))
					r.Spec.ExpirationSeconds = &granted
					return c.SubResource(sub).Create(ctx, o, r, opts...)
				},
			})
			token, err := s.target(limited).IssueToken(t.Context(), needed)
			if test.want == 0 {
				if !s.isFinal(err) || !strings.Contains(err.Error(), "--service-account-max-token-expiration") {
					t.Errorf("the token is issued for less time than the migration needs: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(expiry(t, token)); left > test.want || left < test.want-5*time.Minute {
				t.Errorf("the token is valid for %s, want %s", left, test.want)
			}
		})
	}
}

func (s site) clusterManager() *operatorv1.ClusterManager {
	s.t.Helper()
	m := &operatorv1.ClusterManager{}
	if err := s.c.Get(s.t.Context(), client.ObjectKey{Name: "cluster-manager"}, m); err != nil {
		s.t.Fatal(err)
	}
	return m
}

// mayRegister asks the API server with the token, which is what a cluster does.
func (s site) mayRegister(token string, want bool) {
	s.t.Helper()
	config := rest.AnonymousClientConfig(shared.Config())
	config.BearerToken = token
	c := hubClient(s.t, config)
	deadline := time.Now().Add(patience)
	for {
		err := c.Get(s.t.Context(), client.ObjectKey{Name: s.name}, &clusterv1.ManagedCluster{})
		refused := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
		if client.IgnoreNotFound(err) != nil && !refused {
			s.t.Fatal(err)
		}
		if refused != want {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the token may read ManagedClusters: %v, want %v", !refused, want)
		}
		pause(s.t.Context(), 100*time.Millisecond)
	}
}
