package hub_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/test/fault"
)

// setAddress writes how clusters reach the target hub.
func (g *globalHub) setAddress(address clusterv1.ClientConfig) {
	g.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"managedClusterClientConfigs": []clusterv1.ClientConfig{address}}})
	if err != nil {
		g.t.Fatal(err)
	}
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: g.to.hub}}
	if err := g.c.Patch(g.t.Context(), mc, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		g.t.Fatal(err)
	}
}

// withAccounts makes a global hub whose add-on issues the bootstrap token, and the CA with it.
func withAccounts(t *testing.T) *globalHub {
	t.Helper()
	g := newGlobalHubWith(t, hubMapper())
	g.installAddon(addonv1alpha1.ManagedClusterAddOnStatus{Namespace: "accounts"})
	g.kubeconfig = "token: token of " + g.to.hub
	return g
}

// TestPlanChecksWhatClustersGet: a plan says Ready only if it has verified the target hub by what clusters will verify it by.
//
// Matrix: H135.
func TestPlanChecksWhatClustersGet(t *testing.T) {
	t.Parallel()
	url, own := shared.Config().Host, shared.Config().CAData
	for name, test := range map[string]struct {
		hub      func(*testing.T) *globalHub
		address  clusterv1.ClientConfig
		direct   bool
		decision preflight.Decision
		reason   *godwit.Reason
		says     string
	}{
		"OwnCA":             {newGlobalHub, clusterv1.ClientConfig{URL: url, CABundle: own}, false, preflight.Ready, nil, ""},
		"OtherCA":           {newGlobalHub, clusterv1.ClientConfig{URL: url, CABundle: []byte(unrelatedCA())}, false, preflight.Blocked, api.ReasonHubAddressUntrusted, "the CA in spec.managedClusterClientConfigs"},
		"NoCA":              {newGlobalHub, clusterv1.ClientConfig{URL: url}, false, preflight.Blocked, api.ReasonHubAddressUntrusted, "set caBundle in spec.managedClusterClientConfigs of ManagedCluster to-"},
		"NotReached":        {newGlobalHub, clusterv1.ClientConfig{URL: "https://127.0.0.1:1"}, false, preflight.NotChecked, preflight.ReasonAddressNotChecked, "can't be reached from here"},
		"CAOfToken":         {withAccounts, clusterv1.ClientConfig{URL: url}, false, preflight.NotChecked, preflight.ReasonAddressNotChecked, "with the token of a ManagedServiceAccount"},
		"OwnCABesideTokens": {withAccounts, clusterv1.ClientConfig{URL: url, CABundle: own}, false, preflight.Ready, nil, ""},
		"DirectOwnCA":       {newGlobalHub, clusterv1.ClientConfig{URL: url, CABundle: own}, true, preflight.Ready, nil, ""},
		"DirectNoCA":        {newGlobalHub, clusterv1.ClientConfig{URL: url}, true, preflight.Blocked, api.ReasonHubAddressUntrusted, "give the CA with --to-ca-file=FILE, also if the context has insecure-skip-tls-verify"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := test.hub(t)
			g.setAddress(test.address)
			hubs := preflight.Hubs{Global: g.c, ManagerNamespace: g.namespace, Clock: g.clock}
			if test.direct {
				hubs.Direct = &test.address
			}
			r, err := hubs.Run(t.Context(), preflight.Request{From: g.from.hub, To: g.to.hub, Clusters: []string{"c1"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range r.Checks {
				if c.Name != preflight.CheckTargetAddress {
					continue
				}
				if c.Decision != test.decision || c.Reason != test.reason || !strings.Contains(c.Message, test.says) {
					t.Errorf("%s, %v: %s; want %s, %v: %q", c.Decision, c.Reason, c.Message, test.decision, test.reason, test.says)
				}
				return
			}
			t.Errorf("no check of the address among %+v", r.Checks)
		})
	}
}

// TestManagerGivesTheCAOfTheToken: without a CA in the ManagedCluster of the target hub, clusters get that of the token, which verifies the hub.
//
// Matrix: H135.
func TestManagerGivesTheCAOfTheToken(t *testing.T) {
	t.Parallel()
	g := withAccounts(t)
	g.tokenCA = shared.Config().CAData
	g.setAddress(clusterv1.ClientConfig{URL: shared.Config().Host})
	key := g.migrate("move", "c1")
	p := g.start(nil, key)
	defer p.stop()
	g.issueToken()
	m := g.await(key, "the cluster has moved", settled)
	g.mustBeMoved(m)
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(g.from.opened(string(m.UID))))
	if err != nil || !bytes.Equal(config.CAData, g.tokenCA) {
		t.Errorf("clusters get CA %q: %v", config.CAData, err)
	}
}

// TestDirectWithoutCA: a context has insecure-skip-tls-verify, and no CA. Clusters verify the hub nevertheless, and would not register, so the
// migration fails before it has changed anything.
//
// Matrix: H135.
func TestDirectWithoutCA(t *testing.T) {
	t.Parallel()
	d := newDirectMove(t, 1, nil)
	if err := direct.KeepAddress(d.migration, clusterv1.ClientConfig{URL: d.target.config.Host}); err != nil {
		t.Fatal(err)
	}
	through := &fault.Transport{}
	if err := d.run(t.Context(), "one", through); err != nil {
		t.Fatal(err)
	}
	m := d.read()
	c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled)
	if m.Status.Phase != api.PhaseFailed || c == nil || c.Reason != api.ReasonHubAddressUntrusted.Name || !strings.Contains(c.Message, "--to-ca-file=FILE") {
		t.Errorf("phase %s:\n%s", m.Status.Phase, describe(m))
	}
	for _, write := range through.Writes() {
		if strings.Contains(write, "managedclusters") {
			t.Errorf("the failed migration wrote %s", write)
		}
	}
	for _, s := range d.sites {
		d.back(s, d.before[s.name])
	}
}
