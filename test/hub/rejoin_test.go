package hub_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	own "github.com/godwit-dev/godwit/cmd/hub/klusterlet"
	"github.com/godwit-dev/godwit/test/fault"
)

func difference(before, after operatorv1.KlusterletSpec) string { return cmp.Diff(before, after) }

// run runs the move to its end.
func (l *lostCluster) run(through *fault.Transport, works api.EvictedWorksPolicy) error {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	var err error
	through.Run(ctx, func(ctx context.Context) { err = l.rejoin(through, works).Run(ctx) })
	return err
}

// TestRejoin: a cluster whose hub is lost comes to another hub. What the lost hub has applied stays, and so does what its klusterlet
// lives on. Once it is there, nothing is written any more.
//
// Matrix: H104.
func TestRejoin(t *testing.T) {
	l := newLostCluster(t)
	defer l.play()()
	if err := l.run(&fault.Transport{}, api.EvictedWorksOrphan); err != nil {
		t.Fatal(err)
	}
	l.mustHaveArrived()
	if works := l.works(); len(works) > 0 {
		t.Errorf("works %v of the lost hub are left", works)
	}
	again := &fault.Transport{}
	if err := l.run(again, ""); err != nil || len(again.Writes()) > 0 {
		t.Errorf("the second run wrote %v: %v", again.Writes(), err)
	}
}

// TestRejoinIsContinued kills the process at each of its writes, before and after it. The next process continues, and the cluster has
// arrived in the end.
//
// Matrix: H105.
func TestRejoinIsContinued(t *testing.T) {
	for _, kill := range []string{"killed before the write", "killed after the write"} {
		t.Run(kill, func(t *testing.T) {
			for at, more := 0, true; more; at++ {
				l := newLostCluster(t)
				l.halfMove()
				stop := l.play()
				through := &fault.Transport{Fault: fault.All()[kill], At: at}
				err := l.run(through, api.EvictedWorksOrphan)
				more = len(through.Writes()) > at
				if more && err == nil {
					t.Errorf("write %d, %s, was not the last one of its process", at, through.Writes()[at])
				}
				if err := l.run(&fault.Transport{}, api.EvictedWorksOrphan); err != nil {
					t.Fatalf("after write %d of %v: %v", at, through.Writes(), err)
				}
				stop()
				l.mustHaveArrived()
				if at > 0 && !more && at < 15 {
					t.Errorf("the move has %d writes: %v", at, through.Writes())
				}
			}
		})
	}
}

// halfMove gives the cluster what a migration leaves that loses its source hub in Registering.
func (l *lostCluster) halfMove() {
	l.t.Helper()
	k := &operatorv1.Klusterlet{}
	if err := l.c.Get(l.t.Context(), client.ObjectKey{Name: own.Name}, k); err != nil {
		l.t.Fatal(err)
	}
	r := k.Spec.RegistrationConfiguration
	r.FeatureGates = append(r.FeatureGates, operatorv1.FeatureGate{Feature: "MultipleHubs", Mode: operatorv1.FeatureGateModeTypeEnable})
	r.BootstrapKubeConfigs = operatorv1.BootstrapKubeConfigs{Type: operatorv1.LocalSecrets, LocalSecrets: &operatorv1.LocalSecretsConfig{
		KubeConfigSecrets: []operatorv1.KubeConfigSecret{{Name: own.SourceSecret}, {Name: own.TargetSecret}}, HubConnectionTimeoutSeconds: 180,
	}}
	if err := l.c.Update(l.t.Context(), k); err != nil {
		l.t.Fatal(err)
	}
	for _, name := range []string{own.SourceSecret, own.TargetSecret} {
		if err := client.IgnoreAlreadyExists(l.c.Create(l.t.Context(), l.secret(name, lostServer, "expired"))); err != nil {
			l.t.Fatal(err)
		}
	}
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: l.name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
	original := cluster.Original{Migration: "a-lost-migration"}
	cluster.MarkOwned(mc, original.Migration, "content")
	original.Replace(mc, cluster.AnnotationMigrating, original.Migration)
	if l.importer != nil {
		original.Replace(mc, cluster.AnnotationNoAutoImport, "")
		original.Replace(mc, cluster.AnnotationKlusterletConfig, "of-the-migration")
	}
	if err := errors.Join(original.Save(mc), l.hub.Create(l.t.Context(), mc)); err != nil {
		l.t.Fatal(err)
	}
}

// TestRejoinAcceptsLosses: with Accept, the work agent may delete what the lost hub has applied, but never what the klusterlet lives on.
//
// Matrix: H106.
func TestRejoinAcceptsLosses(t *testing.T) {
	l := newLostCluster(t)
	workload := l.kept[0]
	l.kept = l.kept[1:]
	defer l.play()()
	if err := l.run(&fault.Transport{}, api.EvictedWorksAccept); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; pause(t.Context(), 20*time.Millisecond) {
		if err := l.c.Get(t.Context(), client.ObjectKeyFromObject(workload), &corev1.ConfigMap{}); apierrors.IsNotFound(err) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the work agent does not evict what the lost hub has applied")
		}
	}
	l.mustHaveArrived()
}

// TestRejoinRefuses: each refusal names what is wrong, and nothing was written.
//
// Matrix: H107, H135.
func TestRejoinRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*testing.T, *lostCluster)
		works  api.EvictedWorksPolicy
		reason *godwit.Reason
		text   string
	}{
		"NoChoice": {func(*testing.T, *lostCluster) {}, "", cluster.ReasonWorkStays, "ManifestWork workload of the lost hub"},
		"Answers": {func(t *testing.T, l *lostCluster) {
			config := shared.Config()
			kubeconfig, err := cluster.Kubeconfig(config.Host, config.CAData, "")
			if err != nil {
				t.Fatal(err)
			}
			s := l.secret(own.HubSecret, lostServer, "")
			s.Data["kubeconfig"] = kubeconfig
			if err := l.c.Update(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}, api.EvictedWorksOrphan, cluster.ReasonHubAnswers, "move the cluster with --from-context"},
		"NoCA": {func(_ *testing.T, l *lostCluster) { l.withoutCA = true }, api.EvictedWorksOrphan, api.ReasonHubAddressUntrusted, "--to-ca-file=FILE"},
		"OtherCluster": {func(t *testing.T, l *lostCluster) {
			mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: l.name}}
			if err := l.hub.Create(t.Context(), mc); err != nil {
				t.Fatal(err)
			}
			mc.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionJoined, Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Now()}}
			if err := l.hub.Status().Update(t.Context(), mc); err != nil {
				t.Fatal(err)
			}
		}, api.EvictedWorksOrphan, cluster.ReasonOtherCluster, "has joined"},
		"OtherName": {func(t *testing.T, l *lostCluster) {
			k := &operatorv1.Klusterlet{}
			if err := l.c.Get(t.Context(), client.ObjectKey{Name: own.Name}, k); err != nil {
				t.Fatal(err)
			}
			k.Spec.ClusterName = "another"
			if err := l.c.Update(t.Context(), k); err != nil {
				t.Fatal(err)
			}
		}, api.EvictedWorksOrphan, cluster.ReasonKlusterlet, "has the name another at its hub"},
		"NoKlusterlet": {func(t *testing.T, l *lostCluster) {
			if err := l.c.Delete(t.Context(), &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: own.Name}}); err != nil {
				t.Fatal(err)
			}
		}, api.EvictedWorksOrphan, cluster.ReasonKlusterlet, "clusteradm join"},
		"Requests": {func(t *testing.T, l *lostCluster) {
			for range 10 {
				l.requests++
				s := site{t: t, c: l.hub, name: l.name}
				s.signing(newName())
			}
		}, api.EvictedWorksOrphan, cluster.ReasonTooManyRequests, "kubectl delete csr"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLostCluster(t)
			test.change(t, l)
			defer l.play()()
			err := l.run(&fault.Transport{}, test.works)
			var failure *cluster.Error
			if !errors.As(err, &failure) || failure.Reason != test.reason || !strings.Contains(failure.Message, test.text) {
				t.Errorf("%v, want %s with %q", err, test.reason.Name, test.text)
			}
			bootstrap := &corev1.Secret{}
			if err := l.c.Get(t.Context(), client.ObjectKey{Namespace: agentsNamespace, Name: own.OwnSecret}, bootstrap); err != nil || !strings.Contains(string(bootstrap.Data["kubeconfig"]), lostServer) {
				t.Errorf("the bootstrap kubeconfig has changed, %v", err)
			}
		})
	}
}

// TestRejoinOnHubWithImports: the import controller of the target makes the bootstrap kubeconfig, and approves the cluster. A process that was
// killed at any write is continued.
//
// Matrix: H110.
func TestRejoinOnHubWithImports(t *testing.T) {
	for at, more := 0, true; more; at++ {
		l := newLostCluster(t)
		l.importing()
		if at%2 == 0 {
			l.halfMove()
		}
		stop := l.play()
		through := &fault.Transport{Fault: fault.All()["killed after the write"], At: at}
		if err := l.run(through, api.EvictedWorksOrphan); err == nil && len(through.Writes()) > at {
			t.Errorf("write %d, %s, was not the last one of its process", at, through.Writes()[at])
		}
		more = len(through.Writes()) > at
		if err := l.run(&fault.Transport{}, api.EvictedWorksOrphan); err != nil {
			t.Fatalf("after write %d of %v: %v", at, through.Writes(), err)
		}
		stop()
		l.mustHaveArrived()
		if !more && at < 6 {
			t.Errorf("the move has %d writes: %v", at, through.Writes())
		}
	}
}
