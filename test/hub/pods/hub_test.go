//go:build linux

package pods_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// hubControllers are how many Deployments the operator makes on a hub: controllers of registration, placement, works and add-ons, and
// webhooks.
const hubControllers = 6

// bootstrapAccount is the account of the chart with which clusters register.
const bootstrapAccount = "agent-registration-bootstrap"

// leaseSeconds is the time after which agents renew the lease of their cluster. With the default of 60, each proof that a cluster is at a
// hub takes two minutes.
const leaseSeconds = 15

// startHub starts a hub: the chart installs the operator, and the operator its controllers and webhooks.
func startHub(t *testing.T, name string) *site {
	t.Helper()
	h := startSite(t, name, programs...)
	h.helm(t, "cluster-manager", "cluster-manager/chart/cluster-manager", map[string]any{
		"replicaCount": 1, "createBootstrapSA": true,
		"images": map[string]any{"overrides": map[string]any{
			"operatorImage": h.images["registration-operator"], "registrationImage": h.images["registration"], "workImage": h.images["work"],
			"placementImage": h.images["placement"], "addOnManagerImage": h.images["addon"],
		}},
		"clusterManager": map[string]any{"resourceRequirement": map[string]any{"type": "BestEffort"}},
	})
	return h
}

func (s *site) awaitHub(t *testing.T) {
	t.Helper()
	s.awaitDeployments(t, hubNamespace, hubControllers)
	await(t, "the ClusterManager of "+s.name, func(ctx context.Context) error {
		m := &operatorv1.ClusterManager{}
		if err := s.Get(ctx, client.ObjectKey{Name: "cluster-manager"}, m); err != nil {
			return err
		}
		for kind, want := range map[string]metav1.ConditionStatus{"Applied": metav1.ConditionTrue, "HubRegistrationDegraded": metav1.ConditionFalse} {
			if c := conditionOf(m.Status.Conditions, kind); c.Status != want {
				return fmt.Errorf("condition %+v, want %s", c, want)
			}
		}
		return nil
	})
}

// bootstrapKubeconfig issues a token with which a cluster registers, as `clusteradm get token` does.
func (s *site) bootstrapKubeconfig(t *testing.T) string {
	t.Helper()
	seconds := int64(time.Hour / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: bootstrapAccount}}
	if err := s.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	text, err := clientcmd.Write(kubeconfigOf(s.Config(), request.Status.Token))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// endBootstrap deletes the account with which clusters have registered, so that their bootstrap kubeconfigs are not valid any more.
func (s *site) endBootstrap(t *testing.T) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: bootstrapAccount}}
	if err := s.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
}

func kubeconfigOf(config *rest.Config, token string) clientcmdapi.Config {
	const name = "bootstrap"
	k := clientcmdapi.NewConfig()
	k.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	k.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	k.CurrentContext = name
	return *k
}

// accept accepts a cluster, and approves its request, as `clusteradm accept` does. It returns nil when the cluster has joined.
func (s *site) accept(ctx context.Context, name string) error {
	m := &clusterv1.ManagedCluster{}
	if err := s.Get(ctx, client.ObjectKey{Name: name}, m); err != nil {
		return err
	}
	if !m.Spec.HubAcceptsClient {
		m.Spec.HubAcceptsClient, m.Spec.LeaseDurationSeconds = true, leaseSeconds
		if err := s.Update(ctx, m); err != nil {
			return err
		}
	}
	if conditionOf(m.Status.Conditions, clusterv1.ManagedClusterConditionJoined).Status == metav1.ConditionTrue {
		return nil
	}
	requests := &certificatesv1.CertificateSigningRequestList{}
	if err := s.List(ctx, requests, client.MatchingLabels{clusterv1.ClusterNameLabelKey: name}); err != nil {
		return err
	}
	for i := range requests.Items {
		r := &requests.Items[i]
		if len(r.Status.Conditions) > 0 {
			continue
		}
		r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AcceptedByUser"}}
		if err := s.SubResource("approval").Update(ctx, r); err != nil {
			return err
		}
	}
	return errors.New("the cluster has not joined")
}

// awaitAvailable waits until a cluster is available at the hub.
func (s *site) awaitAvailable(t *testing.T, name string) {
	t.Helper()
	await(t, name+" to be available at "+s.name, func(ctx context.Context) error {
		m := &clusterv1.ManagedCluster{}
		if err := s.Get(ctx, client.ObjectKey{Name: name}, m); err != nil {
			return err
		}
		if c := conditionOf(m.Status.Conditions, clusterv1.ManagedClusterConditionAvailable); c.Status != metav1.ConditionTrue {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
}

// awaitRenewed waits until the agents of clusters have renewed their leases at the hub twice. A condition alone proves nothing: it stays
// True for minutes after a cluster has left.
func (s *site) awaitRenewed(t *testing.T, members ...*member) {
	t.Helper()
	leases := &cluster.Leases{}
	await(t, "the leases of clusters at "+s.name, func(ctx context.Context) error {
		var errs []error
		for _, m := range members {
			fresh, err := leases.Fresh(ctx, cluster.Hub{Client: s.Client}, m.name)
			if err == nil && !fresh {
				err = fmt.Errorf("the lease of %s is not renewed", m.name)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}
