package hub_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// agentsOwn stands for the namespace of an agent, which the manager does not know.
const agentsOwn = "OWN"

// TestManagerNamesTheAccount of the target hub in every command, where the hub has it.
func TestManagerNamesTheAccount(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason    string
		addon     *addonv1alpha1.ManagedClusterAddOnStatus
		issues    bool
		namespace string
	}{
		"NoAddon":      {"Without the add-on, the agent makes the account.", nil, false, agentsOwn},
		"Unserved":     {"The add-on can't be asked for an account.", &addonv1alpha1.ManagedClusterAddOnStatus{Namespace: "accounts"}, false, agentsOwn},
		"Installed":    {"The add-on makes the account where it reports.", &addonv1alpha1.ManagedClusterAddOnStatus{Namespace: "accounts"}, true, "accounts"},
		"NotInstalled": {"The add-on has not reported its namespace.", &addonv1alpha1.ManagedClusterAddOnStatus{}, true, cluster.AccountNamespace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGlobalHub(t)
			if test.issues {
				g = newGlobalHubWith(t, hubMapper())
				g.kubeconfig = "token: token of " + g.to.hub
			}
			if test.addon != nil {
				g.installAddon(*test.addon)
			}
			key := g.migrate("move", "c1")
			p := g.start(nil, key)
			defer p.stop()
			if test.issues {
				g.issueToken()
			}
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

// managedAccounts are the ManagedServiceAccounts of the target hub.
func (g *globalHub) managedAccounts() []unstructured.Unstructured {
	g.t.Helper()
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "authentication.open-cluster-management.io/v1beta1", "kind": "ManagedServiceAccountList"}}
	if err := g.c.List(g.t.Context(), list, client.InNamespace(g.to.hub)); err != nil {
		g.t.Fatal(err)
	}
	return list.Items
}

// issueToken plays the add-on: it waits for a ManagedServiceAccount, and writes the Secret with
// a token. It returns the name and how long the token is to be valid.
func (g *globalHub) issueToken() (name, validity string) {
	g.t.Helper()
	deadline := time.Now().Add(patience)
	for len(g.managedAccounts()) == 0 {
		if time.Now().After(deadline) {
			g.t.Fatal("the manager creates no ManagedServiceAccount")
		}
		pause(g.t.Context(), awaitEvery)
	}
	account := g.managedAccounts()[0]
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: g.to.hub, Name: account.GetName()}, Data: map[string][]byte{
		corev1.ServiceAccountTokenKey: []byte("token of " + g.to.hub), corev1.ServiceAccountRootCAKey: g.tokenCA,
	}}
	if err := g.c.Create(g.t.Context(), secret); err != nil {
		g.t.Fatal(err)
	}
	validity, _, _ = unstructured.NestedString(account.Object, "spec", "rotation", "validity")
	return account.GetName(), validity
}

// TestManagerIssuesByManagedServiceAccount: with the kind on the global hub, the manager writes the
// bootstrap kubeconfig from the token of the add-on, for the source hub alone, and the target
// hub issues none. Two migrations between the same hubs share the account, and the later end
// deletes it.
func TestManagerIssuesByManagedServiceAccount(t *testing.T) {
	t.Parallel()
	g := newGlobalHubWith(t, hubMapper())
	g.installAddon(addonv1alpha1.ManagedClusterAddOnStatus{Namespace: "accounts"})
	g.kubeconfig = "token: token of " + g.to.hub
	held, release := g.from.hold(hub.SendResources)
	defer release()
	first, second := g.migrate("first", "c1"), g.migrate("second", "c2")
	p := g.start(nil, first, second)
	defer p.stop()
	name, validity := g.issueToken()
	<-held
	<-held
	// An add-on renews a token when a fifth of its time is left, so that a token that is shared is
	// valid for a whole migration all the same, and for a day in which work is left.
	whole := hub.New(g.read(first).Spec).Timeouts.Total() + 24*time.Hour
	if got, err := time.ParseDuration(validity); err != nil || got/5 < whole || got > 6*whole {
		t.Errorf("a token is valid for %s, and a migration takes up to %s: %v", validity, whole, err)
	}
	if account := g.to.account(); account != "accounts/"+name {
		t.Errorf("the target is told account %s, want accounts/%s", account, name)
	}
	if err := g.c.Delete(t.Context(), g.read(second)); err != nil {
		t.Fatal(err)
	}
	g.awaitGone(second)
	if len(g.managedAccounts()) != 1 {
		t.Error("the ManagedServiceAccount is gone, and a migration needs it")
	}
	release()
	m := g.await(first, "the cluster has moved", settled)
	g.mustBeMoved(m)
	if !strings.Contains(g.from.opened(string(m.UID)), addressOf(g.to.hub)) {
		t.Errorf("the kubeconfig does not name the address of hub %s", g.to.hub)
	}
	if left := g.managedAccounts(); len(left) > 0 {
		t.Errorf("ManagedServiceAccount %s is left", left[0].GetName())
	}
}

// removedAccounts is a mapper with a cached mapping of ManagedServiceAccount, whose CRD was deleted since.
type removedAccounts struct{ meta.RESTMapper }

func (r removedAccounts) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := r.RESTMapper.RESTMapping(kind, versions...)
	if err != nil || kind.Kind != "ManagedServiceAccount" {
		return mapping, err
	}
	removed := *mapping
	removed.Resource.Resource = "removedaccounts"
	return &removed, nil
}

// TestManagerMovesAfterTheAddonIsRemoved: the kind ManagedServiceAccount was served when the manager started, and is not any more. The
// target issues the kubeconfig, as on a global hub that has never had the add-on.
func TestManagerMovesAfterTheAddonIsRemoved(t *testing.T) {
	t.Parallel()
	g := newGlobalHubWith(t, removedAccounts{hubMapper()})
	key := g.migrate("move", "c1")
	p := g.start(nil, key)
	defer p.stop()
	g.mustBeMoved(g.await(key, "the cluster has moved", settled))
}

// unlisted is a transport to an API server that does not list the CRD of ManagedServiceAccounts while it is true.
type unlisted struct {
	http.RoundTripper
	*atomic.Bool
}

func (u unlisted) RoundTrip(r *http.Request) (*http.Response, error) {
	if u.Load() {
		r = r.Clone(r.Context())
		r.URL.Path = strings.Replace(r.URL.Path, "/managedserviceaccounts", "/unlistedaccounts", 1)
	}
	return u.RoundTripper.RoundTrip(r)
}

// TestManagerKeepsTheAccount: the bootstrap account of a migration stays the one with whose token its clusters register. An API server that restarts
// may not list the CRD of ManagedServiceAccounts yet, and a user may install the add-on during a migration.
//
// Matrix: H142.
func TestManagerKeepsTheAccount(t *testing.T) {
	t.Parallel()
	for name, served := range map[string]bool{"NotListedAnyMore": true, "InstalledLater": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, hidden := shared.Config(), new(atomic.Bool)
			hidden.Store(!served)
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return unlisted{next, hidden} })
			g, want := newGlobalHubOn(t, config, hubMapper()), agentsOwn
			g.installAddon(addonv1alpha1.ManagedClusterAddOnStatus{Namespace: "accounts"})
			if served {
				g.kubeconfig, want = "token: token of "+g.to.hub, "accounts"
			}
			held, release := g.from.hold(hub.SendResources)
			defer release()
			key := g.migrate("move", "c1")
			p := g.start(nil, key)
			defer p.stop()
			if served {
				g.issueToken()
			}
			<-held
			hidden.Store(served)
			release()
			g.mustBeMoved(g.await(key, "the cluster has moved", settled))
			if namespace, _, _ := strings.Cut(g.to.account(), "/"); namespace != want {
				t.Errorf("the commands name an account in namespace %q, want %q", namespace, want)
			}
		})
	}
}

// TestManagerRefusesAShortToken: a migration with shorter timeouts has had a token issued that would expire
// before this one ends. The manager says how to get another one, and takes that.
//
// Matrix: H25.
func TestManagerRefusesAShortToken(t *testing.T) {
	t.Parallel()
	g := newGlobalHubWith(t, hubMapper())
	g.installAddon(addonv1alpha1.ManagedClusterAddOnStatus{Namespace: "accounts"})
	g.kubeconfig = "token: token of " + g.to.hub
	said := &lines{}
	g.log = funcr.New(func(prefix, args string) { said.add(prefix, args) }, funcr.Options{Verbosity: 1})
	key := g.migrate("move", "c1")
	total := hub.New(g.read(key).Spec).Timeouts.Total()
	p := g.start(nil, key)
	defer p.stop()
	deadline := time.Now().Add(patience)
	for len(g.managedAccounts()) == 0 && time.Now().Before(deadline) {
		pause(t.Context(), awaitEvery)
	}
	g.setExpiry(time.Now().Add(total / 2))
	name, _ := g.issueToken()
	remedy := "kubectl -n " + g.to.hub + " delete secret " + name
	for !strings.Contains(strings.Join(said.text(), "\n"), remedy) {
		if time.Now().After(deadline) {
			t.Fatalf("the manager does not say %q:\n%s", remedy, strings.Join(said.text(), "\n"))
		}
		pause(t.Context(), awaitEvery)
	}
	if phase := g.read(key).Status.Phase; phase != api.PhaseInitializing {
		t.Errorf("the migration is in phase %s, want Initializing", phase)
	}
	if err := g.c.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: g.to.hub, Name: name}}); err != nil {
		t.Fatal(err)
	}
	g.setExpiry(time.Now().Add(total + time.Minute))
	g.issueToken()
	g.mustBeMoved(g.await(key, "the cluster has moved", settled))
}

// setExpiry plays the add-on, which says when the token of the ManagedServiceAccount expires.
func (g *globalHub) setExpiry(expires time.Time) {
	g.t.Helper()
	account := &g.managedAccounts()[0]
	patch := fmt.Sprintf(`{"status":{"expirationTimestamp":%q}}`, expires.UTC().Format(time.RFC3339))
	if err := g.c.Status().Patch(g.t.Context(), account, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		g.t.Fatal(err)
	}
}

// awaitGone waits until a migration is deleted.
func (g *globalHub) awaitGone(key objectKey) {
	g.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		m := &api.ManagedClusterMigration{}
		err := g.c.Get(g.t.Context(), key, m)
		if client.IgnoreNotFound(err) == nil && err != nil {
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("%s is still there: %v\n%s", key, err, describe(m))
		}
		pause(g.t.Context(), awaitEvery)
	}
}

// TestManagerFails with a reason, before a cluster changes hubs: nothing is left of the migration.
//
// Matrix: H135.
func TestManagerFails(t *testing.T) {
	t.Parallel()
	accounts := func(t *testing.T) *globalHub {
		t.Helper()
		g := newGlobalHubWith(t, hubMapper())
		g.installAddon(addonv1alpha1.ManagedClusterAddOnStatus{})
		return g
	}
	for name, test := range map[string]struct {
		why       string
		hub       func(*testing.T) *globalHub
		spoil     func(*globalHub)
		placement string
		token     bool
		reason    *godwit.Reason
		says      string
	}{
		"NoAddress": {"The kubeconfig would have no server.", newGlobalHub, func(g *globalHub) {
			mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: g.to.hub}}
			if err := g.c.Patch(g.t.Context(), mc, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"managedClusterClientConfigs":null}}`))); err != nil {
				g.t.Fatal(err)
			}
		}, "", false, api.ReasonHubAddressUnknown, "has no spec.managedClusterClientConfigs: set it"},
		"AddressUntrusted": {"No cluster would register.", newGlobalHub, func(g *globalHub) {
			g.setAddress(clusterv1.ClientConfig{URL: shared.Config().Host, CABundle: []byte(unrelatedCA())})
		}, "", false, api.ReasonHubAddressUntrusted, "signed by unknown authority"},
		"NoCA": {"Clusters verify the hub by the root certificates of their system.", newGlobalHub, func(g *globalHub) {
			g.setAddress(clusterv1.ClientConfig{URL: shared.Config().Host})
		}, "", false, api.ReasonHubAddressUntrusted, "clusters get no CA for hub"},
		"CAOfToken": {"Clusters get the CA of the token.", accounts, func(g *globalHub) {
			g.setAddress(clusterv1.ClientConfig{URL: shared.Config().Host})
		}, "", true, api.ReasonHubAddressUntrusted, "which clusters get with its token, does not verify"},
		"NoKey":          {"The command can't be made.", accounts, func(g *globalHub) { g.from.keyless = true }, "", true, api.ReasonFailed, "has sent no sealing key"},
		"EmptyPlacement": {"No cluster would move.", newGlobalHub, func(*globalHub) {}, "none", false, api.ReasonClustersInvalid, "placement none selects no cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := test.hub(t)
			test.spoil(g)
			clusters := []string{"c1"}
			if test.placement != "" {
				clusters = nil
			}
			key := g.migrateBy(test.placement, "move", clusters...)
			p := g.start(nil, key)
			defer p.stop()
			if test.token {
				g.issueToken()
			}
			m := g.await(key, "the migration has failed", settled)
			c := meta.FindStatusCondition(m.Status.Conditions, api.ConditionStalled)
			if m.Status.Phase != api.PhaseFailed || c == nil || c.Status != metav1.ConditionTrue || c.Reason != test.reason.Name || !strings.Contains(c.Message, test.says) {
				t.Errorf("%s Phase %s, want %s because of %q:\n%s", test.why, m.Status.Phase, test.reason, test.says, describe(m))
			}
			for _, action := range append(g.from.executed(), g.to.executed()...) {
				if action == string(hub.ReleaseClusters) || action == string(hub.ReceiveResources) {
					t.Errorf("a hub was told %s", action)
				}
			}
			g.awaitNoKeys(m)
		})
	}
}

// TestManagerMovesWhatAPlacementSelects, and names no cluster itself before the source has.
func TestManagerMovesWhatAPlacementSelects(t *testing.T) {
	t.Parallel()
	g := newGlobalHub(t)
	g.from.selects = []string{"c1", "c2"}
	key := g.migrateBy("some", "move")
	p := g.start(nil, key)
	defer p.stop()
	m := g.await(key, "the clusters have moved", settled)
	g.mustBeMoved(m)
	if m.Status.Counts.Total != 2 {
		t.Errorf("%d clusters have moved, want 2", m.Status.Counts.Total)
	}
}
