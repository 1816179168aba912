package hub_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/godwit-dev/godwit/hub/cluster"
)

// TestManagerNamesTheAccount of the target hub in every command, where the hub has it.
func TestManagerNamesTheAccount(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason    string
		addon     *addonv1alpha1.ManagedClusterAddOnStatus
		namespace string
	}{
		"NoAddon":      {"Without the add-on, the agent makes the account.", nil, cluster.AccountNamespace},
		"NotInstalled": {"The add-on has not reported its namespace.", &addonv1alpha1.ManagedClusterAddOnStatus{}, cluster.AccountNamespace},
		"OwnNamespace": {"The add-on makes the account in its namespace.", &addonv1alpha1.ManagedClusterAddOnStatus{Namespace: "accounts"}, "accounts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGlobalHub(t)
			if test.addon != nil {
				g.installAddon(*test.addon)
			}
			key := g.migrate("move", "c1")
			p := g.start(nil, key)
			defer p.stop()
			g.mustBeMoved(g.await(key, "the cluster has moved", settled))
			namespace, account, _ := strings.Cut(g.to.account(), "/")
			if namespace != test.namespace || !strings.HasPrefix(account, "godwit-migration-") {
				t.Errorf("%s The commands name account %s in namespace %q, want %q", test.reason, account, namespace, test.namespace)
			}
		})
	}
}

// installAddon plays the add-on of ManagedServiceAccounts on the target hub.
func (g *globalHub) installAddon(status addonv1alpha1.ManagedClusterAddOnStatus) {
	g.t.Helper()
	if err := g.c.Create(g.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.to.hub}}); err != nil {
		g.t.Fatal(err)
	}
	addon := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: g.to.hub, Name: "managed-serviceaccount"}}
	if err := g.c.Create(g.t.Context(), addon); err != nil {
		g.t.Fatal(err)
	}
	addon.Status = status
	if err := g.c.Status().Update(g.t.Context(), addon); err != nil {
		g.t.Fatal(err)
	}
}
