package hub_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/test/fault"
)

const (
	// preDelete is the finalizer of an add-on with a hook before its deletion, which its agent runs.
	preDelete = "addon.open-cluster-management.io/addon-pre-delete"
	// ofHub is a finalizer that a controller of the hub removes.
	ofHub = "hub.example.com/own"
)

// addOn makes a ManagedClusterAddOn of the cluster.
func (s site) addOn(name string, finalizers ...string) *unstructured.Unstructured {
	s.t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	o.SetGroupVersionKind(cluster.AddOnKind)
	o.SetNamespace(s.name)
	o.SetName(name)
	o.SetFinalizers(finalizers)
	s.create(o)
	return o
}

// applyAs applies spec.hubAcceptsClient of the ManagedCluster as a tool does that has a repository.
func (s site) applyAs(manager string, marks map[string]any) {
	s.t.Helper()
	metadata := map[string]any{"name": s.name}
	maps.Copy(metadata, marks)
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata, "spec": map[string]any{"hubAcceptsClient": true}}}
	o.SetAPIVersion(clusterv1.GroupVersion.String())
	o.SetKind("ManagedCluster")
	if err := s.c.Apply(s.t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(manager), client.ForceOwnership); err != nil {
		s.t.Fatal(err)
	}
}

// updateAs sets spec.hubAcceptsClient by an update, as an apply of a client does that is not server-side.
func (s site) updateAs(manager string) {
	s.t.Helper()
	for _, patch := range []string{`{"spec":{"hubAcceptsClient":false}}`, `{"spec":{"hubAcceptsClient":true}}`} {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
		if err := s.c.Patch(s.t.Context(), mc, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// warnings are what ValidateSource finds. It must not refuse the cluster for them.
func (s site) warnings() (all []godwit.Finding) {
	s.t.Helper()
	h := s.source(s.c)
	var mutex sync.Mutex
	h.Warn = func(name string, found []godwit.Finding) {
		mutex.Lock()
		defer mutex.Unlock()
		if name != s.name {
			s.t.Errorf("a warning is of %s", name)
		}
		all = found
	}
	r, err := h.ValidateSource(s.t.Context(), []string{s.name})
	if err != nil || len(r.Done) != 1 {
		s.t.Fatalf("%+v, %v", r, err)
	}
	return all
}

// TestAppliedIsNamed: a tool applies spec.hubAcceptsClient from a repository. The warning names its object, and what suspends it.
//
// Matrix: H136.
func TestAppliedIsNamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		apply func(site)
		says  []string
	}{
		"NotApplied":   {func(site) {}, nil},
		"ByUser":       {func(s site) { s.applyAs("kubectl", nil) }, nil},
		"ByArgo":       {func(s site) { s.applyAs("argocd-controller", nil) }, []string{"argocd-controller applies", "suspend what applies it"}},
		"ByArgoUpdate": {func(s site) { s.updateAs("argocd-controller") }, []string{"argocd-controller applies"}},
		"ByApplication": {func(s site) {
			s.applyAs("argocd-controller", map[string]any{"annotations": map[string]any{"argocd.argoproj.io/tracking-id": "fleet:cluster.open-cluster-management.io/ManagedCluster:/" + s.name}})
		}, []string{"Application fleet (argocd-controller)", "spec.syncPolicy.automated"}},
		"ByNamespacedApp": {func(s site) {
			s.applyAs("argocd-controller", map[string]any{"annotations": map[string]any{"argocd.argoproj.io/tracking-id": "team_fleet:cluster.open-cluster-management.io/ManagedCluster:/" + s.name}})
		}, []string{"Application team/fleet"}},
		"ByArgoLabel": {func(s site) {
			s.applyAs("argocd-controller", map[string]any{"labels": map[string]any{"argocd.argoproj.io/instance": "fleet"}})
		}, []string{"Application fleet"}},
		"ByKustomization": {func(s site) {
			s.applyAs("kustomize-controller", map[string]any{"labels": map[string]any{"kustomize.toolkit.fluxcd.io/name": "fleet", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}})
		}, []string{"Kustomization flux-system/fleet", "flux suspend kustomization fleet -n flux-system"}},
		"ByHelmRelease": {func(s site) {
			s.applyAs("helm-controller", map[string]any{"labels": map[string]any{"helm.toolkit.fluxcd.io/name": "fleet", "helm.toolkit.fluxcd.io/namespace": "apps"}})
		}, []string{"flux suspend helmrelease fleet -n apps"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			test.apply(s)
			found := s.warnings()
			if len(test.says) == 0 {
				if len(found) > 0 {
					t.Errorf("the warnings are %+v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Reason != cluster.ReasonApplied {
				t.Fatalf("the warnings are %+v", found)
			}
			for _, text := range test.says {
				if !strings.Contains(found[0].Message, text) {
					t.Errorf("the warning is %q, want %q", found[0].Message, text)
				}
			}
		})
	}
}

// patchIn returns the patch of the command at the end of a message.
func patchIn(t *testing.T, message string) string {
	t.Helper()
	_, patch, ok := strings.Cut(message, " --type=json -p '")
	if !ok || !strings.HasSuffix(patch, "'") {
		t.Fatalf("no command in %q", message)
	}
	return strings.TrimSuffix(patch, "'")
}

// TestAddOnFinalizerIsNamed: the command of the warning removes the finalizers of the agent alone, and nothing if they have changed since. Without
// it, Cleaning says which ManagedClusterAddOn it waits for.
//
// Matrix: H137.
func TestAddOnFinalizerIsNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addOn("search")
	s.addOn("hubs-own", ofHub)
	both, one := s.addOn("both", ofHub, preDelete), s.addOn("one", preDelete)
	found := s.warnings()
	slices.SortFunc(found, func(a, b godwit.Finding) int { return strings.Compare(a.Message, b.Message) })
	if len(found) != 2 || found[0].Reason != cluster.ReasonAddOnFinalizer || found[1].Reason != cluster.ReasonAddOnFinalizer {
		t.Fatalf("the warnings are %+v", found)
	}
	s.installed()
	s.sent()
	s.released()
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	hold := func(finalizers string) {
		t.Helper()
		if err := s.c.Patch(t.Context(), mc, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))); err != nil {
			t.Fatal(err)
		}
	}
	hold(`["cluster.open-cluster-management.io/api-resource-cleanup"]`)
	deleteMoved := func() (cluster.Result, error) { return s.source(s.c).DeleteMoved(t.Context(), []string{s.name}) }
	s.mustWait("has left, removes of its finalizers "+preDelete+": remove them: kubectl -n "+s.name+" edit managedclusteraddon ", deleteMoved)

	for i, o := range []*unstructured.Unstructured{both, one} {
		patch := client.RawPatch(types.JSONPatchType, []byte(patchIn(t, found[i].Message)))
		if err := s.c.Patch(t.Context(), o, patch); err != nil {
			t.Fatal(err)
		}
		if want := []string{ofHub}[:1-i]; !slices.Equal(o.GetFinalizers(), want) {
			t.Errorf("%s has finalizers %v, want %v", o.GetName(), o.GetFinalizers(), want)
		}
		if err := s.c.Patch(t.Context(), o, patch); err == nil {
			t.Errorf("the command changes %s again", o.GetName())
		}
	}
	s.mustWait("is being deleted", deleteMoved)
	hold("null")
	s.done(deleteMoved)
}

// TestLongWarningIsWhole: a patch that has no room in a warning is replaced by a shorter command. Cleaning names all finalizers, too.
//
// Matrix: H137.
func TestLongWarningIsWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	name, others := strings.Repeat("a", 63), strings.Repeat("x", 60)+".example.com/own"
	hosted := "addon.open-cluster-management.io/hosting-addon-pre-delete"
	s.addOn(name, others, preDelete, hosted)
	found := s.warnings()
	if len(found) != 1 || len(found[0].Message) > hub.MaxWarning || !strings.HasSuffix(found[0].Message, "remove them: kubectl -n "+s.name+" edit managedclusteraddon "+name) {
		t.Fatalf("the warnings are %+v", found)
	}
	if want := preDelete + ", " + hosted; !strings.Contains(found[0].Message, want) {
		t.Errorf("%q does not name %s", found[0].Message, want)
	}
}

// TestPlanWarns: a plan reads from real objects what may keep the migration from its end, and says AtRisk.
//
// Matrix: H136, H137.
func TestPlanWarns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.applyAs("argocd-controller", nil)
	s.addOn("search", ofHub, preDelete)
	hubs := preflight.Hubs{
		Global: globalClient(t, shared.Config(), hubMapper()), Direct: &clusterv1.ClientConfig{URL: shared.Config().Host, CABundle: shared.Config().CAData}, Clock: clock.RealClock{},
		Source: &preflight.View{Client: s.c, AgentNamespace: "default", Clock: clock.RealClock{}},
	}
	r, err := hubs.Run(t.Context(), preflight.Request{From: "from", To: s.to, Clusters: []string{s.name}, OnUserObjects: api.UserObjectsKeep})
	if err != nil || len(r.Clusters) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	var reasons []*godwit.Reason
	for _, f := range r.Clusters[0].AtRisk {
		reasons = append(reasons, f.Reason)
	}
	for _, want := range []*godwit.Reason{cluster.ReasonApplied, cluster.ReasonAddOnFinalizer, preflight.ReasonAddOnStays} {
		if !slices.Contains(reasons, want) {
			t.Errorf("%s is not among %v", want, r.Clusters[0].AtRisk)
		}
	}
}

// TestMigrationWarns: nothing but the migration itself looks, as with one from a repository. Its status and its events have the warnings, and the
// ObservabilityAddon whose agent has left is deleted.
//
// Matrix: H136, H137.
func TestMigrationWarns(t *testing.T) {
	t.Parallel()
	d := newDirectMove(t, 2, nil)
	warned := d.sites[0]
	warned.applyAs("kustomize-controller", map[string]any{"labels": map[string]any{"kustomize.toolkit.fluxcd.io/name": "fleet", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}})
	warned.addOn("search", ofHub, preDelete)
	d.before = d.objects()
	recorder := events.NewFakeRecorder(1000)
	o := d.options("one", &fault.Transport{})
	o.Recorder = recorder
	if err := d.carryOut(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	m := d.read()
	if m.Status.Phase != api.PhaseCompleted || int(m.Status.Counts.Moved) != 2 {
		t.Fatalf("phase %s, counts %+v:\n%s", m.Status.Phase, m.Status.Counts, describe(m))
	}
	got := map[string]string{}
	for _, w := range m.Status.Progress.Warnings {
		if w.Cluster != warned.name {
			t.Errorf("a warning is of %s", w.Cluster)
		}
		got[w.Reason] = w.Message
	}
	if len(got) != 2 || !strings.HasSuffix(got[cluster.ReasonApplied.Name], "flux suspend kustomization fleet -n flux-system") {
		t.Errorf("the warnings are %v", got)
	}
	patchIn(t, got[cluster.ReasonAddOnFinalizer.Name]) // it is not cut
	for _, reason := range []*godwit.Reason{cluster.ReasonApplied, cluster.ReasonAddOnFinalizer} {
		found := false
		for deadline := time.After(time.Second); !found; {
			select {
			case e := <-recorder.Events:
				found = strings.HasPrefix(e, "Warning "+reason.Name+" "+warned.name+": ")
			case <-deadline:
				t.Fatalf("no event of %s", reason)
			}
		}
	}
}
