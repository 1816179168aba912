package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestFaults: each fault hits the manager while it migrates. The migration ends, and no object is written twice.
func TestFaults(t *testing.T) {
	t.Parallel() // its cluster is its own, and most of the time it waits
	c, err := startCluster("faults")
	if err != nil {
		t.Fatal(err)
	}
	s := newStageOn(t, c, version)
	// So many objects that the migration lasts longer than the fault: the manager writes 20 a second.
	faults := []struct {
		name    string
		objects int
		happen  func(*stage) error
		before  func(*stage) error // the migration begins, unless nil
	}{
		{name: "killed", objects: 600, happen: (*stage).killLeader},
		{name: "kubelet", objects: 600, happen: (*stage).restartKubelet},
		{name: "apiserver", objects: 600, happen: func(s *stage) error { return s.RestartAPIServer(s.t.Context()) }},
		{name: "tokens", objects: 600, happen: (*stage).voidTokens},
		{name: "memory", objects: 800, happen: (*stage).exhaustMemory},
		{name: "drained", objects: 1200, before: (*stage).addSecondNode, happen: (*stage).drainLeader},
	}
	var all []*geese
	for _, f := range faults {
		all = append(all, s.define(f.name+".example.com", f.objects))
	}
	s.install(version, merged(quick(all...), map[string]any{"operator": map[string]any{"replicas": 2}}))
	for i, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			s := s.with(t)
			g := all[i]
			g.s = s
			if f.before != nil {
				if err := f.before(s); err != nil {
					t.Fatal(err)
				}
			}
			watched := s.watchMigration(g.crd())
			g.flip()
			g.awaitUnderWay()
			if err := f.happen(s); err != nil {
				t.Fatal(err)
			}
			g.expectUnderWay()
			g.awaitMigrated()
			expectSteady(t, watched())
			g.expectToldOnce()
			s.expectMemory()
		})
	}
}

// with is the stage for a subtest.
func (s *stage) with(t *testing.T) *stage {
	t.Helper()
	of := *s
	of.t = t
	return &of
}

// leader returns the pod that has the lease.
func (s *stage) leader() (*corev1.Pod, error) {
	lease := &coordinationv1.Lease{}
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: system, Name: "godwit-storage-version-migrator"}, lease); err != nil {
		return nil, err
	}
	if lease.Spec.HolderIdentity == nil {
		return nil, errors.New("no pod has the lease")
	}
	name := (*lease.Spec.HolderIdentity)[:strings.LastIndexByte(*lease.Spec.HolderIdentity, '_')]
	pod := &corev1.Pod{}
	return pod, s.Get(s.t.Context(), client.ObjectKey{Namespace: system, Name: name}, pod)
}

// killLeader kills the container of the leader, and waits until it runs again.
func (s *stage) killLeader() error {
	leader, err := s.leader()
	if err != nil {
		return err
	}
	if err := s.Node(leader.Spec.NodeName).KillContainer(s.t.Context(), leader.Status.ContainerStatuses[0].ContainerID); err != nil {
		return err
	}
	return s.awaitRestart(leader, "Error")
}

// exhaustMemory brings the container of the leader to its limit, at which the kernel kills it, and waits until it runs again.
func (s *stage) exhaustMemory() error {
	leader, err := s.leader()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	if err := s.Node(leader.Spec.NodeName).ExhaustMemory(ctx, leader.Status.ContainerStatuses[0].ContainerID); err != nil {
		return err
	}
	return s.awaitRestart(leader, "OOMKilled")
}

// awaitRestart waits until a killed container of a pod runs again. The reason is what the status of the pod says about its end.
func (s *stage) awaitRestart(pod *corev1.Pod, reason string) error {
	const killed = 137 // 128 and SIGKILL
	id := pod.Status.ContainerStatuses[0].ContainerID
	_, err := s.AwaitPod(s.t.Context(), system, pod.Name, "to run again after its end by "+reason, func(p *corev1.Pod) bool {
		status := p.Status.ContainerStatuses[0]
		last := status.LastTerminationState.Terminated
		return status.Ready && last != nil && last.ContainerID == id && last.ExitCode == killed && last.Reason == reason
	})
	return err
}

func (s *stage) restartKubelet() error {
	leader, err := s.leader()
	if err != nil {
		return err
	}
	return s.restartKubeletOf(leader)
}

func (s *stage) restartKubeletOf(pod *corev1.Pod) error {
	n := s.Node(pod.Spec.NodeName)
	if err := n.StopKubelet(); err != nil {
		return err
	}
	return n.StartKubelet(s.t.Context())
}

// voidTokens replaces the key that signs tokens, so that none that was issued is valid, as one whose time is over, and restarts the kubelet,
// which gives each pod another one. No time passes: Kubernetes issues tokens for ten minutes at least, and a kubelet renews one by itself
// after eight.
func (s *stage) voidTokens() error {
	before, err := s.leader()
	if err != nil {
		return err
	}
	issued, err := s.Clients.CoreV1().ServiceAccounts(system).CreateToken(s.t.Context(), before.Spec.ServiceAccountName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := s.ReplaceTokenKey(s.t.Context()); err != nil {
		return err
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: issued.Status.Token}}
	if err := s.Create(s.t.Context(), review); err != nil {
		return err
	}
	if review.Status.Authenticated {
		s.t.Error("a token of the manager is valid: the test has changed nothing")
	}
	return s.restartKubeletOf(before)
}

func (s *stage) addSecondNode() error {
	if _, err := s.AddNode(s.t.Context(), "node2"); err != nil {
		return err
	}
	return s.Load(s.t.Context(), s.image(version))
}

// drainLeader drains the node of the leader to another node, while the PodDisruptionBudget keeps one of the pods.
func (s *stage) drainLeader() error {
	leader, err := s.leader()
	if err != nil {
		return err
	}
	name := leader.Spec.NodeName
	s.kubectl("drain", name, "--timeout=2m")
	defer s.kubectl("uncordon", name)
	s.await("the pods to be ready on the other node", func(context.Context) error {
		pods := s.pods()
		for _, p := range pods {
			if p.Spec.NodeName == name || len(p.Status.ContainerStatuses) == 0 || !p.Status.ContainerStatuses[0].Ready {
				return fmt.Errorf("pod %s on %s has status %+v", p.Name, p.Spec.NodeName, p.Status.ContainerStatuses)
			}
		}
		if len(pods) != 2 {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		return nil
	})
	return nil
}
