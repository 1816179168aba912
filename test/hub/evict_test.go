package hub_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

// switched is a cluster whose agents have gone to the target hub. Nothing has finished its move.
type switched struct {
	source, target site
	agents         *klusterlet.Klusterlet
}

// switchHubs moves a cluster until it is registered at the target hub.
func switchHubs(t *testing.T, freezes bool) switched {
	t.Helper()
	return switchHubsOf(t, freezes, func(*klusterlet.Klusterlet) {})
}

// switchHubsOf does the same with agents that are changed before.
func switchHubsOf(t *testing.T, freezes bool, change func(*klusterlet.Klusterlet)) switched {
	t.Helper()
	s := newSite(t)
	s.freezes = freezes
	to := site{t: t, c: hubClient(t, second.Config()), name: s.name, uid: s.uid, to: s.to, freezes: freezes}
	if err := to.c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bootstrapNamespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	target := to.importer()
	target.Server = "https://" + s.to + ".example.com"
	m := switched{source: s, target: to, agents: &klusterlet.Klusterlet{Name: s.name, Source: s.importer(), Target: target}}
	change(m.agents)
	m.act()
	m.done(s, s.install(s.c))
	sent := s.sent()
	to.done(to.receive(to.c, sent))
	to.done(func() (cluster.Result, error) { return to.target(to.c).AcceptClusters(t.Context(), []string{s.name}) })
	s.released()
	m.act()
	m.act()
	if !m.agents.IsConfiguredBy(to.c) {
		t.Fatal("the cluster is not registered at the target hub")
	}
	return m
}

// restoreAcceptance has the source hub accept the cluster again, as the target hub still does.
func (m switched) restoreAcceptance() {
	m.source.t.Helper()
	m.source.done(func() (cluster.Result, error) {
		return m.source.source(m.source.c).RestoreAcceptance(m.source.t.Context(), []string{m.source.name})
	})
}

// mustReturn has the target hub accept the cluster no more, and the cluster come back.
func (m switched) mustReturn() {
	t := m.source.t
	t.Helper()
	clusters := []string{m.source.name}
	m.target.done(func() (cluster.Result, error) {
		return m.target.target(m.target.c).StopAccepting(t.Context(), clusters)
	})
	m.done(m.source, func() (cluster.Result, error) {
		return m.source.source(m.source.c).RevertBootstrap(t.Context(), clusters)
	})
	m.act()
	if !m.agents.IsConfiguredBy(m.source.c) {
		t.Fatal("the cluster has not returned")
	}
}

// act is a pass of the cluster's agents and of both import controllers.
func (m switched) act() {
	m.source.t.Helper()
	if err := m.agents.Pass(m.source.t.Context()); err != nil && !klusterlet.IsTransient(err) {
		m.source.t.Fatal(err)
	}
}

// done repeats a pass until it is done for the cluster, whose agents act in between.
func (m switched) done(s site, pass func() (cluster.Result, error)) {
	s.t.Helper()
	s.done(func() (cluster.Result, error) {
		r, err := pass()
		m.act()
		return r, err
	})
}

func (m switched) mustLive(when string) {
	m.source.t.Helper()
	if !m.agents.Evict() {
		m.source.t.Fatalf("the cluster has deleted its own klusterlet when the eviction grace ended %s", when)
	}
}

// TestKlusterletOutlivesTheEviction: a cluster keeps its klusterlet when the hubs finish its move, or take it back, later than the work agent
// evicts what the source hub has applied.
//
// Matrix: H89.
func TestKlusterletOutlivesTheEviction(t *testing.T) {
	t.Parallel()
	for name, freezes := range map[string]bool{"Import controller": false, "Later import controller": true} {
		t.Run(name+", moved", func(t *testing.T) {
			t.Parallel()
			m := switchHubs(t, freezes)
			m.mustLive("before FinishMoved")
			m.done(m.target, func() (cluster.Result, error) {
				return m.target.target(m.target.c).FinishMoved(t.Context(), []string{m.target.name})
			})
			m.mustLive("before DeleteMoved")
			m.done(m.source, func() (cluster.Result, error) {
				return m.source.source(m.source.c).DeleteMoved(t.Context(), []string{m.source.name})
			})
			m.mustLive("after the move")
		})
		t.Run(name+", returned", func(t *testing.T) {
			t.Parallel()
			m := switchHubs(t, freezes)
			m.mustLive("at the target hub")
			m.restoreAcceptance()
			m.mustReturn()
			m.mustLive("after the return")
			work := m.source.klusterletWork(cluster.KlusterletCRDWork(m.source.name))
			if work.Spec.DeleteOption != nil || cluster.HasOriginal(work, m.source.uid) {
				t.Errorf("ManifestWork %s has delete option %v and annotations %v after the rollback", work.Name, work.Spec.DeleteOption, work.Annotations)
			}
		})
	}
}

// TestAgentsTryHubsInOrder: agents that have lost their certificate while both hubs accept the cluster choose the first of their bootstrap
// kubeconfigs, and then they return as the others do. The order is that of the hub whose work the cluster has applied last.
//
// Matrix: H139.
func TestAgentsTryHubsInOrder(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		freezes, ownFirst, atTarget bool
	}{
		"Import controller, of the source":       {freezes: true, atTarget: true},
		"Import controller, of the target":       {},
		"ManifestWork of a migration, own first": {freezes: true, ownFirst: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := switchHubsOf(t, test.freezes, func(k *klusterlet.Klusterlet) { k.Source.OwnFirst, k.Target.OwnFirst = test.ownFirst, test.ownFirst })
			m.restoreAcceptance()
			m.act()
			if m.agents.Hub() != m.target.c {
				t.Fatal("an agent with a certificate has left its hub, which accepts the cluster")
			}
			m.agents.LoseCertificate()
			m.act()
			chosen := map[bool]client.Client{true: m.target.c, false: m.source.c}
			if m.agents.Hub() != chosen[test.atTarget] {
				t.Fatalf("the agent has not chosen its first hub, which is the target: %v", test.atTarget)
			}
			m.mustReturn()
		})
	}
}

// klusterletWork reads a ManifestWork of the cluster.
func (s site) klusterletWork(name string) *workv1.ManifestWork {
	s.t.Helper()
	work := &workv1.ManifestWork{}
	if err := s.c.Get(s.t.Context(), client.ObjectKey{Namespace: s.name, Name: name}, work); err != nil {
		s.t.Fatal(err)
	}
	return work
}

// TestReleaseNeedsOrphan: a cluster whose agents an eviction would delete is not released.
//
// Matrix: H89.
func TestReleaseNeedsOrphan(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.installed()
	work := s.klusterletWork(cluster.KlusterletCRDWork(s.name))
	work.Spec.DeleteOption = nil
	if err := s.c.Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	s.mustFail(cluster.ReasonNotPrepared, "would delete its own klusterlet", func() (cluster.Result, error) {
		return s.source(s.c).ReleaseClusters(t.Context(), []string{s.name})
	})
	if !s.cluster().Spec.HubAcceptsClient {
		t.Error("the cluster is released")
	}
}

// TestInstallWhileGenerationsMove: a ManifestWork that another client changes all the time is applied when the cluster has applied a generation
// with the kubeconfigs of both hubs.
//
// Matrix: H90.
func TestInstallWhileGenerationsMove(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	hub := s.source(s.c)
	hub.Written = &cluster.Written{}
	install := func() (cluster.Result, error) {
		return hub.InstallBootstrap(t.Context(), []string{s.name}, s.targetKubeconfig())
	}
	s.mustWait("has not written the kubeconfigs of both hubs", install)
	s.setWork(true) // with delete option Orphan
	name := cluster.KlusterletWork(s.name)
	move := func() *workv1.ManifestWork {
		work := s.klusterletWork(name)
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, work.Spec.Workload.Manifests[0])
		if err := s.c.Update(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		return work
	}
	move()
	s.mustWait("has not applied generation", install)
	work := s.klusterletWork(name)
	applied := work.Generation
	move()
	s.mustWait("has not applied generation", install)
	work = move()
	meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: workv1.WorkApplied, Status: metav1.ConditionTrue, Reason: "Applied", ObservedGeneration: applied})
	if err := s.c.Status().Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	s.done(install)
}

// TestTokenOfTheImportController: the import controller finds the token of a cluster while its klusterlet has the kubeconfigs of two hubs, and
// issues another one afterwards, when it would not know the expiry of that.
//
// Matrix: H91.
func TestTokenOfTheImportController(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	imported := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: s.name + "-import"}}
	s.create(imported)
	s.installed()
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: s.name + "-bootstrap-sa-token-godwit"}}
	if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(token), token); err != nil || token.Type != corev1.SecretTypeServiceAccountToken || string(token.Data["token"]) != "token of https://hub.example.com" {
		t.Fatalf("Secret %s of type %s with %q, %v", token.Name, token.Type, token.Data["token"], err)
	}
	hub, clusters := s.source(s.c), []string{s.name}
	s.done(func() (cluster.Result, error) { return hub.RevertBootstrap(t.Context(), clusters) })
	if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(token), token); err != nil {
		t.Errorf("the token that the import controller finds until the cluster has returned: %v", err)
	}
	leases := &cluster.Leases{}
	for range 2 {
		s.mustWait("has not renewed", func() (cluster.Result, error) { return hub.AwaitReturn(t.Context(), clusters, leases) })
		s.renewLease()
	}
	s.done(func() (cluster.Result, error) { return hub.AwaitReturn(t.Context(), clusters, leases) })
	for _, secret := range []*corev1.Secret{token, imported} {
		if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
			t.Errorf("Secret %s after the return: %v, want NotFound", secret.Name, err)
		}
	}
	issued := &corev1.Secret{ObjectMeta: imported.ObjectMeta, Data: map[string][]byte{"expiration": []byte("2027-01-01T00:00:00Z")}}
	issued.ResourceVersion = ""
	s.create(issued)
	s.done(func() (cluster.Result, error) { return hub.AwaitReturn(t.Context(), clusters, leases) })
	if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(issued), issued); err != nil {
		t.Errorf("the import Secret with the token that the import controller has issued since: %v", err)
	}
}

// TestTokenAtTheTarget: the import controller of the target does not find the token when it issues the cluster its own.
//
// Matrix: H91.
func TestTokenAtTheTarget(t *testing.T) {
	t.Parallel()
	s, arrived := moving(t)
	s.done(s.receive(s.c, arrived))
	s.setWork(true)
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: s.name + "-import"}})
	hub, clusters := s.target(s.c), []string{s.name}
	s.done(func() (cluster.Result, error) { return hub.AcceptClusters(t.Context(), clusters) })
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: s.name + "-bootstrap-sa-token-godwit"}}
	if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(token), token); err != nil {
		t.Fatal(err)
	}
	s.mustWait("has not removed the kubeconfig of the source hub", func() (cluster.Result, error) { return hub.FinishMoved(t.Context(), clusters) })
	if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(token), token); !apierrors.IsNotFound(err) {
		t.Errorf("Secret %s when automatic import is enabled again: %v, want NotFound", token.Name, err)
	}
}

// TestTokensOfALateImportController: an import controller of the target that begins with a cluster after AcceptClusters issues no tokens for
// long either, and one more when the cluster has moved.
//
// Matrix: H91.
func TestTokensOfALateImportController(t *testing.T) {
	t.Parallel()
	for name, freezes := range map[string]bool{"Import controller": false, "Later import controller": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, arrived := moving(t)
			s.freezes = freezes
			s.done(s.receive(s.c, arrived))
			hub, clusters := s.target(s.c), []string{s.name}
			s.done(func() (cluster.Result, error) { return hub.AcceptClusters(t.Context(), clusters) })
			controller := s.importer()
			controller.Tokens = &klusterlet.Tokens{}
			act := func() {
				t.Helper()
				works, err := controller.Configure(t.Context(), s.cluster())
				if err != nil {
					t.Fatal(err)
				}
				if err := controller.SetApplied(t.Context(), works.CRDs, works.Klusterlet); err != nil {
					t.Fatal(err)
				}
			}
			act()
			leases := &cluster.Leases{}
			s.mustWait("has made no CertificateSigningRequest", func() (cluster.Result, error) { return hub.AwaitRegistration(t.Context(), clusters, leases) })
			issued := controller.Tokens.Issued()
			for range 3 {
				act()
			}
			if more := controller.Tokens.Issued() - issued; more > 0 {
				t.Errorf("the import controller has issued %d tokens after a pass of AwaitRegistration", more)
			}
			s.done(func() (cluster.Result, error) {
				r, err := hub.FinishMoved(t.Context(), clusters)
				act()
				return r, err
			})
			if more := controller.Tokens.Issued() - issued; more != 1 {
				t.Errorf("the import controller has issued %d tokens in FinishMoved, want one whose expiry it knows", more)
			}
		})
	}
}

// TestNamespaceOfTheTargetStays: the import controller labels the namespace of a cluster, and deletes it after the ManagedCluster. One that was
// there before is retained, and has no label afterwards by which the controller would find it.
//
// Matrix: H16.
func TestNamespaceOfTheTargetStays(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]bool{"Returned": true, "Moved": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, arrived := moving(t)
			s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: map[string]string{"mine": "yes"}}})
			s.done(s.receive(s.c, arrived))
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
			read := func() {
				t.Helper()
				if err := s.c.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil {
					t.Fatal(err)
				}
			}
			read()
			if namespace.Annotations[cluster.AnnotationRetain] != "true" {
				t.Errorf("the import controller deletes namespace %s with annotations %v", s.name, namespace.Annotations)
			}
			labels := []string{"cluster.open-cluster-management.io/managedCluster", "open-cluster-management.io/cluster-name"}
			for _, label := range labels {
				namespace.Labels[label] = s.name
			}
			if err := s.c.Update(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
			hub, clusters := s.target(s.c), []string{s.name}
			if back {
				s.done(func() (cluster.Result, error) { return hub.DeleteCreated(t.Context(), clusters) })
			} else {
				s.setWork(true)
				s.mustWait("has not removed", func() (cluster.Result, error) { return hub.FinishMoved(t.Context(), clusters) })
				s.setWork(true)
				s.done(func() (cluster.Result, error) { return hub.FinishMoved(t.Context(), clusters) })
			}
			read()
			if !namespace.DeletionTimestamp.IsZero() || len(namespace.Annotations) > 0 || namespace.Labels["mine"] != "yes" {
				t.Errorf("namespace %s: deleted at %v, annotations %v, labels %v", s.name, namespace.DeletionTimestamp, namespace.Annotations, namespace.Labels)
			}
			for _, label := range labels {
				if _, has := namespace.Labels[label]; has == back {
					t.Errorf("label %s of namespace %s: %v", label, s.name, has)
				}
			}
		})
	}
}
