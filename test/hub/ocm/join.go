package ocm

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/process"
)

// JoinOwnCluster joins a cluster to a hub as `clusteradm join` and `clusteradm accept` do: with a bootstrap token that is not valid any more
// when the cluster has registered. spec changes the Klusterlet.
func JoinOwnCluster(ctx context.Context, h *Hub, name string, spec func(*operatorv1.KlusterletSpec)) (*OwnCluster, error) {
	if err := h.Client.Create(ctx, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: leaseSeconds},
	}); err != nil {
		return nil, fmt.Errorf("join cluster %s: %w", name, err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: "join-" + name}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: bootstrapRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hubNamespace, Name: account.Name}},
	}
	for _, o := range []client.Object{account, binding} {
		if err := h.Client.Create(ctx, o); err != nil {
			return nil, fmt.Errorf("join cluster %s: %w", name, err)
		}
	}
	kubeconfig, err := h.IssueKubeconfig(ctx, hubNamespace, account.Name, time.Hour)
	if err != nil {
		return nil, err
	}
	c, err := startOwnCluster(ctx, name, func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		return joining(ctx, name, kubeconfig, spec)
	})
	if err != nil {
		return nil, err
	}
	if err := process.Poll(ctx, name+" to register", func(ctx context.Context) error { return h.acceptRequest(ctx, name) }); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	for _, o := range []client.Object{account, binding} {
		if err := h.Client.Delete(ctx, o); err != nil {
			return nil, errors.Join(fmt.Errorf("end the bootstrap token of %s: %w", name, err), c.Stop())
		}
	}
	return c, nil
}

// joining returns what `clusteradm join` applies to a cluster.
func joining(ctx context.Context, name string, kubeconfig []byte, change func(*operatorv1.KlusterletSpec)) ([]*unstructured.Unstructured, error) {
	crds, err := CRDs(ctx, "operator/v1/*_klusterlets.crd.yaml")
	if err != nil {
		return nil, err
	}
	spec := operatorv1.KlusterletSpec{
		ClusterName: name, Namespace: klusterletNamespace, DeployOption: operatorv1.KlusterletDeployOption{Mode: operatorv1.InstallModeSingleton},
		ImagePullSpec: images + "/operator", RegistrationImagePullSpec: images + "/registration", WorkImagePullSpec: images + "/work",
	}
	if change != nil {
		change(&spec)
	}
	objects := []any{
		&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: klusterletNamespace}},
		bootstrapSecret(singleHub, kubeconfig),
		&operatorv1.Klusterlet{TypeMeta: metav1.TypeMeta{APIVersion: operatorv1.GroupVersion.String(), Kind: "Klusterlet"}, ObjectMeta: metav1.ObjectMeta{Name: "klusterlet"}, Spec: spec},
	}
	for i := range crds {
		crds[i].TypeMeta = metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"}
		objects = append([]any{crds[i]}, objects...)
	}
	all := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, fmt.Errorf("render the manifests of cluster %s: %w", name, err)
		}
		delete(fields, "status")
		all[i] = &unstructured.Unstructured{Object: fields}
	}
	return all, nil
}

// acceptRequest approves the CertificateSigningRequest of a cluster, and returns nil when the cluster has joined.
func (h *Hub) acceptRequest(ctx context.Context, name string) error {
	mc := &clusterv1.ManagedCluster{}
	if err := h.Client.Get(ctx, client.ObjectKey{Name: name}, mc); err != nil {
		return err
	}
	for _, c := range mc.Status.Conditions {
		if c.Type == clusterv1.ManagedClusterConditionJoined && c.Status == metav1.ConditionTrue {
			return nil
		}
	}
	requests := &certificatesv1.CertificateSigningRequestList{}
	if err := h.Client.List(ctx, requests, client.MatchingLabels{clusterv1.ClusterNameLabelKey: name}); err != nil {
		return err
	}
	for i := range requests.Items {
		r := &requests.Items[i]
		if len(r.Status.Conditions) > 0 {
			continue
		}
		r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AcceptedByUser"}}
		if err := h.Client.SubResource("approval").Update(ctx, r); err != nil {
			return err
		}
	}
	return errors.New("the cluster has not joined")
}
