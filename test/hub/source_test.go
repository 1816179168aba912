package hub_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
	"github.com/godwit-dev/godwit/cmd/hub/source"
)

func (s site) install(c client.Client) func() (cluster.Result, error) {
	return func() (cluster.Result, error) {
		return s.source(c).InstallBootstrap(s.t.Context(), []string{s.name}, s.targetKubeconfig())
	}
}

// targetKubeconfig is what the manager sends to the source.
func (s site) targetKubeconfig() []byte {
	s.t.Helper()
	kubeconfig, err := cluster.Kubeconfig("https://"+s.to+".example.com", nil, "token of "+s.to)
	if err != nil {
		s.t.Fatal(err)
	}
	return kubeconfig
}

// installed does the phase Initializing.
func (s site) installed() {
	s.t.Helper()
	s.mustWait("has not written the kubeconfigs of both hubs", s.install(s.c))
	s.setWork(true)
	s.done(s.install(s.c))
}

func (s site) send(c client.Client, into *[]message.ResourceBundle) func() (cluster.Result, error) {
	return func() (cluster.Result, error) {
		return s.source(c).SendResources(s.t.Context(), source.Parcel{Clusters: []string{s.name}, Total: 1}, func(_ context.Context, b message.ResourceBundle) error {
			*into = append(*into, b)
			return nil
		})
	}
}

// sent does the source's part of Deploying.
func (s site) sent() []message.Resources {
	s.t.Helper()
	var bundles []message.ResourceBundle
	s.done(s.send(s.c, &bundles))
	r := message.NewReassembler([]string{s.name}, 1<<20)
	var all []message.Resources
	for _, b := range bundles {
		complete, err := r.Add(b)
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, complete...)
	}
	if len(all) != 1 || len(r.Missing()) > 0 {
		s.t.Fatalf("%d clusters have arrived, missing %v", len(all), r.Missing())
	}
	return all
}

func (s site) released() {
	s.t.Helper()
	s.done(func() (cluster.Result, error) { return s.source(s.c).ReleaseClusters(s.t.Context(), []string{s.name}) })
}

// TestInstallWaitsForTheKlusterlet: the phase ends when the klusterlet has the kubeconfig,
// and not when the annotation is set. The proxy of the user's KlusterletConfig stays.
func TestInstallWaitsForTheKlusterlet(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mustWait("has not written the kubeconfigs of both hubs", s.install(s.c))
	s.mustWait("has not written the kubeconfigs of both hubs", s.install(s.c))
	s.setWork(false)
	s.mustWait("has not applied generation", s.install(s.c))
	s.setWork(true)
	s.done(s.install(s.c))

	annotations := s.cluster().Annotations
	config := &unstructured.Unstructured{}
	config.SetGroupVersionKind(cluster.KlusterletConfigKind)
	if err := s.c.Get(t.Context(), client.ObjectKey{Name: annotations[cluster.AnnotationKlusterletConfig]}, config); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"hubKubeAPIServerConfig": map[string]any{"proxyURL": "http://proxy.example.com"},
		"multipleHubsConfig": map[string]any{
			"genBootstrapKubeConfigStrategy": "IncludeCurrentHub",
			"bootstrapKubeConfigs": map[string]any{"type": "LocalSecrets", "localSecretsConfig": map[string]any{
				"kubeConfigSecrets": []any{map[string]any{"name": "bootstrap-" + s.to}}, "hubConnectionTimeoutSeconds": int64(180),
			}},
		},
	}
	if diff := cmp.Diff(want, config.Object["spec"]); diff != "" {
		t.Errorf("KlusterletConfig of the migration (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(config.GetName(), "migration-"+s.to) {
		t.Errorf("the KlusterletConfig is %s", config.GetName())
	}
	if annotations[cluster.AnnotationMigrating] != s.uid {
		t.Errorf("annotations are %v", annotations)
	}
	secret := &corev1.Secret{}
	if err := s.c.Get(t.Context(), client.ObjectKey{Namespace: bootstrapNamespace, Name: "bootstrap-" + s.to}, secret); err != nil || !bytes.Equal(secret.Data["kubeconfig"], s.targetKubeconfig()) {
		t.Errorf("bootstrap secret %v, %v", secret.Data, err)
	}
}

// TestSourceRollback: after Registering, everything on the source is as it was, object by
// object, and an agent is back when its lease says so.
//
// Matrix: H18, H22.
func TestSourceRollback(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	before := s.objects()
	s.installed()
	s.sent()
	for name, text := range s.objects() {
		if host := strings.HasPrefix(name, "BareMetalHost/"); host != strings.Contains(text, `"baremetalhost.metal3.io/paused":"true"`) {
			t.Errorf("%s is paused: %v; every host is, and nothing else by this annotation", name, !host)
		}
	}
	s.released()
	if s.cluster().Spec.HubAcceptsClient {
		t.Error("the source still accepts the cluster that it has released")
	}

	hub, clusters := s.source(s.c), []string{s.name}
	s.done(func() (cluster.Result, error) { return hub.RestoreAcceptance(t.Context(), clusters) })
	if !s.cluster().Spec.HubAcceptsClient {
		t.Error("the source does not accept the cluster")
	}
	s.done(func() (cluster.Result, error) { return hub.RemovePauses(t.Context(), clusters) })
	s.done(func() (cluster.Result, error) { return hub.RevertBootstrap(t.Context(), clusters) })
	if diff := cmp.Diff(before, s.objects()); diff != "" {
		t.Errorf("after the rollback (-before +after):\n%s", diff)
	}
	s.sharedIsGone()

	leases := &cluster.Leases{}
	await := func() (cluster.Result, error) { return hub.AwaitReturn(t.Context(), clusters, leases) }
	for range 2 { // Joined and Available are True all the time, which proves nothing
		s.mustWait("has not renewed its lease on the source hub twice", await)
		s.renewLease()
	}
	s.done(await)
}

// TestUsersChangesStay: what a user has changed during the migration is not undone.
func TestUsersChangesStay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.installed()
	mc := s.cluster()
	mc.Annotations[cluster.AnnotationKlusterletConfig] = "chosen-meanwhile"
	if err := s.c.Update(t.Context(), mc); err != nil {
		t.Fatal(err)
	}
	s.done(func() (cluster.Result, error) { return s.source(s.c).RevertBootstrap(t.Context(), []string{s.name}) })
	want := map[string]string{cluster.AnnotationKlusterletConfig: "chosen-meanwhile", "mine": "yes"}
	if diff := cmp.Diff(want, s.cluster().Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// TestReadOnlyWork: an import controller that leaves klusterlets alone, since a user has
// disabled automatic import, does not count as one that has configured them.
func TestReadOnlyWork(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.freezes = true
	s.annotate(cluster.AnnotationNoAutoImport, "")
	s.mustWait("has not written the kubeconfigs of both hubs", s.install(s.c))
	s.setWork(true)
	s.mustWait("has not written the kubeconfigs of both hubs", s.install(s.c))
	s.freezes = false
	s.setWork(true)
	s.freezes = true
	s.setWork(true)
	s.mustWait("is read-only", s.install(s.c))
}

// TestSentIsAllowed: what a source sends, a target accepts, and it has nothing of the hub. The site has an
// object for each rule and for each reference in the rules, so that [TestMove] moves all of them.
func TestSentIsAllowed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.installed()
	var objects []unstructured.Unstructured
	var kinds []string
	var references []resource.Reference
	for _, text := range s.sent()[0].Objects {
		var o unstructured.Unstructured
		if err := o.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
		kinds = append(kinds, o.GetKind()+"/"+strings.ReplaceAll(o.GetName(), s.name, "NAME"))
		references = append(references, resource.References(o.Object, resource.Rules())...)
		if o.GetKind() == "ManagedCluster" {
			identity := map[string]any{"clusterClaims": []any{map[string]any{"name": cluster.ClaimID, "value": "id-of-" + s.name}}}
			if diff := cmp.Diff(identity, o.Object["status"]); diff != "" || o.GetAnnotations()[cluster.AnnotationKlusterletConfig] != "proxy-"+s.name {
				t.Errorf("the ManagedCluster that is sent: %s, status (-want +got):\n%s", text, diff)
			}
		}
	}
	for _, o := range objects {
		if err := resource.Check(s.name, o.Object, resource.Rules(), references); err != nil {
			t.Error(err)
		}
	}
	want := []string{
		"Secret/NAME-admin-kubeconfig", "Secret/NAME-admin-password", "Secret/NAME-metadata-json", "Secret/NAME-seed-reconfiguration",
		"Secret/network", "Secret/preserved", "ConfigMap/kept", "ManagedCluster/NAME", "KlusterletAddonConfig/NAME",
		"BareMetalHost/node-1", "BareMetalHost/node-2", "BareMetalHost/node-3",
		"HostFirmwareSettings/node-1", "FirmwareSchema/schema-1", "HostFirmwareComponents/node-1", "DataImage/node-1",
		"ImageClusterInstall/NAME", "ClusterDeployment/NAME",
		"Secret/bmc", "Secret/user-data", "Secret/network-data", "Secret/meta-data", "Secret/preprovisioning", "ConfigMap/extra", "Secret/pull", "ConfigMap/manifests",
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("objects that were sent (-want +got):\n%s", diff)
	}
	for _, rule := range single(resource.Rules()) {
		if !slices.ContainsFunc(objects, func(o unstructured.Unstructured) bool {
			_, matches := resource.For(s.name, o.Object, []resource.Rule{rule})
			return matches && (len(rule.References) == 0 || len(resource.References(o.Object, []resource.Rule{rule})) > 0)
		}) {
			t.Errorf("the site has no object for rule %+v, so that no test moves one", rule)
		}
	}
}

// single returns a rule for each name and each reference of rules.
func single(rules []resource.Rule) []resource.Rule {
	var all []resource.Rule
	for _, rule := range rules {
		bare := rule
		bare.References = nil
		for _, name := range rule.Names {
			bare.Names = []string{name}
			all = append(all, bare)
		}
		if len(rule.Names) == 0 {
			all = append(all, bare)
		}
		for _, r := range rule.References {
			bare.References = []resource.ReferencePath{r}
			all = append(all, bare)
		}
	}
	return all
}

// TestDeleteMoved: nothing that moves is left, no host is unpaused on the way, and an object
// with a finalizer of others is named.
//
// Matrix: H74, H77.
func TestDeleteMoved(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.installed()
	s.sent()
	remove := func() (cluster.Result, error) { return s.source(s.c).DeleteMoved(t.Context(), []string{s.name}) }
	s.mustFail(cluster.ReasonNotPrepared, "accepts", remove)
	s.released()

	s.edit(func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/hold"}) })
	s.mustWait("ManagedCluster "+s.name+" is being deleted", remove)
	s.edit(func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	s.done(remove)
	if left := s.objects(); len(left) != 1 || left["ConfigMap/not-moved"] == "" {
		t.Errorf("left on the source: %v", left)
	}
	s.sharedIsGone()
}

// TestDeleteMovedKeepsANewCluster: a cluster that was imported again is not deleted.
func TestDeleteMovedKeepsANewCluster(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.mustFail(cluster.ReasonNotPrepared, "created again", func() (cluster.Result, error) {
		return s.source(s.c).DeleteMoved(t.Context(), []string{s.name})
	})
	s.cluster()
}
