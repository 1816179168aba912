package e2e_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/hub/ocm"
)

// isAccounts reports whether a CRD is that of ManagedServiceAccounts.
func isAccounts(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Names.Kind == "ManagedServiceAccount"
}

// serveAccounts installs the kind ManagedServiceAccount on the global hub, and starts the project's own reconciler of them for
// hub2. Until the end of the test, migrations get their bootstrap token by it, and not from the agent of hub2.
func serveAccounts(t *testing.T, in *installation) {
	t.Helper()
	crds, err := controlplane.ReadCRDs("../testdata/crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crds = slices.DeleteFunc(crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return !isAccounts(crd) })
	if err := controlplane.InstallCRDs(t.Context(), in.hub1.Config(), crds...); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.AccountNamespace}}
	if err := in.hub2.Client.Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	reconciler, err := ocm.StartAccounts(t.Context(), in.hub1, in.hub2, namespace.Name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := reconciler.Stop(); err != nil {
			t.Error(err)
		}
		for _, crd := range crds {
			crd.ResourceVersion = ""
			if err := in.hub1.Client.Delete(context.WithoutCancel(t.Context()), crd); err != nil {
				t.Error(err)
			}
		}
		in.manager.kill(t) // it knows the kind
	})
}

// accounts are the ManagedServiceAccounts for hub2.
func accounts(t *testing.T, in *installation) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("authentication.open-cluster-management.io/v1beta1")
	list.SetKind("ManagedServiceAccountList")
	if err := in.hub1.Client.List(t.Context(), list, client.InNamespace(in.hub2.Name)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// TestManagedServiceAccount moves a cluster by the token of a ManagedServiceAccount, which the real reconciler issues. The account
// is deleted at the end, and with it the ServiceAccount and the Secret.
//
// Matrix: H59.
func TestManagedServiceAccount(t *testing.T) {
	in := install(t)
	serveAccounts(t, in)
	const name = "account-1"
	c := importSites(t, in.fleet, name)[0]
	before := onHub(t, in.hub1, name)
	m := in.migrate(t, "account", nil, name)
	secrets := m.keysOf()
	maps.Copy(secrets, secretsOf(t, name))
	found := accounts(t, in)
	if len(found) != 1 {
		t.Fatalf("the global hub has %d ManagedServiceAccounts for hub2, want 1", len(found))
	}
	account := found[0]
	if validity, _, _ := unstructured.NestedString(account.Object, "spec", "rotation", "validity"); mustParse(t, validity) < time.Hour {
		t.Errorf("the token of the ManagedServiceAccount is valid for %s, which a migration with its rollback may exceed", validity)
	}
	// The ServiceAccount of hub2 is the reconciler's, and the agent of hub2 has issued no token.
	key := client.ObjectKey{Namespace: cluster.AccountNamespace, Name: account.GetName()}
	sa := &corev1.ServiceAccount{}
	if err := in.hub2.Client.Get(t.Context(), key, sa); err != nil || sa.Labels["authentication.open-cluster-management.io/is-managed-serviceaccount"] != "true" {
		t.Errorf("ServiceAccount %s of hub2 has labels %v, %v; want that of managed-serviceaccount", key, sa.Labels, err)
	}
	m.mustReach(api.PhaseCompleted)
	awaitRegistered(t, in.hub2, name)
	mustHaveMoved(t, in.fleet, before, c)
	awaitGone(t, in.hub1.Client, &account)
	awaitGone(t, in.hub1.Client, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in.hub2.Name, Name: account.GetName()}})
	awaitGone(t, in.hub2.Client, sa)
	m.mustNotLeak(secrets)
}

func mustParse(t *testing.T, duration string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(duration)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
