package hub_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/source"
)

// choosing is the source hub with the choices of a user.
func (s site) choosing(works api.EvictedWorksPolicy, users api.UserObjectsPolicy) source.Hub {
	h := s.source(s.c)
	h.OnEvictedWorks, h.OnUserObjects = works, users
	return h
}

// newWork creates a ManifestWork of a user, which the cluster has applied.
func (s site) newWork(name string, option *workv1.DeleteOption) *workv1.ManifestWork {
	s.t.Helper()
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name}}
	w.Spec.DeleteOption = option
	w.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"app","namespace":"default"}}`)}}}
	s.create(w)
	s.setApplied(w)
	return w
}

// setApplied plays the work agent of the cluster.
func (s site) setApplied(w *workv1.ManifestWork) {
	s.t.Helper()
	if err := s.c.Get(s.t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
		s.t.Fatal(err)
	}
	if err := s.importer().SetApplied(s.t.Context(), w); err != nil {
		s.t.Fatal(err)
	}
}

// TestLosses: the validation names what the move would destroy, until a user has chosen what becomes of it.
//
// Matrix: H88.
func TestLosses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.newWork("shop", nil)
	validate := func(works api.EvictedWorksPolicy, users api.UserObjectsPolicy) func() (cluster.Result, error) {
		return func() (cluster.Result, error) {
			return s.choosing(works, users).ValidateSource(t.Context(), []string{s.name})
		}
	}
	for _, c := range []struct {
		works  api.EvictedWorksPolicy
		users  api.UserObjectsPolicy
		reason *godwit.Reason
		want   string
	}{
		{api.EvictedWorksRefuse, api.UserObjectsAccept, cluster.ReasonWorkStays, "ManifestWork shop of the source hub does not move"},
		{api.EvictedWorksAccept, api.UserObjectsRefuse, cluster.ReasonUserObjects, "namespace " + s.name + " of the source hub has ConfigMap not-moved, which no rule moves"},
	} {
		s.mustFail(c.reason, c.want, validate(c.works, c.users))
	}
	for _, works := range []api.EvictedWorksPolicy{"", api.EvictedWorksAccept, api.EvictedWorksOrphan} {
		for _, users := range []api.UserObjectsPolicy{"", api.UserObjectsAccept, api.UserObjectsMove, api.UserObjectsKeep} {
			s.done(validate(works, users))
		}
	}
	evicted, unmoved, err := s.choosing(api.EvictedWorksAccept, api.UserObjectsAccept).AcceptedLosses(t.Context(), s.name)
	if err != nil || !slices.Equal(evicted, []string{"shop"}) || !slices.Equal(unmoved, []string{"ConfigMap not-moved"}) {
		t.Errorf("accepted are %v, %v, %v", evicted, unmoved, err)
	}
}

// TestWorksSetToOrphan: before a cluster is released, the work agent has applied each ManifestWork with the delete option Orphan, also one
// that a user has made meanwhile. A rollback restores the delete options.
//
// Matrix: H88.
func TestWorksSetToOrphan(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.newWork("first", nil)
	hub, clusters := s.choosing(api.EvictedWorksOrphan, ""), []string{s.name}
	install := func() (cluster.Result, error) {
		return hub.InstallBootstrap(t.Context(), clusters, s.targetKubeconfig())
	}
	s.mustWait("has not written the kubeconfigs of both hubs", install)
	s.setWork(true)
	s.mustWait("has not applied ManifestWork "+s.name+"/first", install)
	s.mustWait("has not applied ManifestWork "+s.name+"/first", install)
	s.setApplied(first)
	if o := first.Spec.DeleteOption; o == nil || o.PropagationPolicy != workv1.DeletePropagationPolicyTypeOrphan {
		t.Errorf("the delete option is %v, want Orphan", o)
	}
	s.done(install)

	foreground := &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground}
	second := s.newWork("second", foreground)
	release := func() (cluster.Result, error) { return hub.ReleaseClusters(t.Context(), clusters) }
	s.mustWait("has not applied ManifestWork "+s.name+"/second", release)
	if !s.cluster().Spec.HubAcceptsClient {
		t.Error("the cluster is released before its work agent has applied the ManifestWorks")
	}
	s.setApplied(second)
	s.done(release)

	s.done(func() (cluster.Result, error) { return hub.RestoreAcceptance(t.Context(), clusters) })
	s.done(func() (cluster.Result, error) { return hub.RevertBootstrap(t.Context(), clusters) })
	for w, want := range map[*workv1.ManifestWork]*workv1.DeleteOption{first: nil, second: foreground} {
		if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, w.Spec.DeleteOption); diff != "" || len(w.Annotations) > 0 {
			t.Errorf("ManifestWork %s after the rollback: annotations %v, delete option (-want +got):\n%s", w.Name, w.Annotations, diff)
		}
	}
	s.sharedIsGone()
}

// TestKeptNamespace: the import controller keeps a namespace with this annotation. One without objects of users is not kept.
//
// Matrix: H88.
func TestKeptNamespace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		choice  api.UserObjectsPolicy
		isEmpty bool
		kept    bool
	}{
		"Keep":      {choice: api.UserObjectsKeep, kept: true},
		"KeepEmpty": {choice: api.UserObjectsKeep, isEmpty: true},
		"Accept":    {choice: api.UserObjectsAccept},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.installed()
			s.sent()
			s.released()
			if tc.isEmpty {
				if err := s.c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "not-moved"}}); err != nil {
					t.Fatal(err)
				}
			}
			s.done(func() (cluster.Result, error) {
				return s.choosing("", tc.choice).DeleteMoved(t.Context(), []string{s.name})
			})
			namespace := &corev1.Namespace{}
			if err := s.c.Get(t.Context(), client.ObjectKey{Name: s.name}, namespace); err != nil {
				t.Fatal(err)
			}
			if _, kept := namespace.Annotations["open-cluster-management.io/retain-namespace"]; kept != tc.kept {
				t.Errorf("the annotations are %v", namespace.Annotations)
			}
		})
	}
}

// TestUserObjectsMove: the user has chosen that what no rule moves does move.
//
// Matrix: H88.
func TestUserObjectsMove(t *testing.T) {
	t.Parallel()
	m := newMove(t, 1)
	m.users = api.UserObjectsMove
	before := m.objects()
	m.run(m.source)
	m.run(m.target)
	m.start()
	m.mustEnd(api.PhaseCompleted)
	s := m.sites[0]
	if left := s.objects(); len(left) > 0 {
		t.Errorf("left on the source hub: %v", left)
	}
	if diff := cmp.Diff(asUserSees(before[s.name]), asUserSees(m.onTarget(s).objects())); diff != "" {
		t.Errorf("on the target hub (-before +after):\n%s", diff)
	}
}
