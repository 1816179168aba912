package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/bench/internal/account"
	"github.com/godwit-dev/godwit/bench/internal/frame"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/test/hub/ocm"
	"github.com/godwit-dev/godwit/walk"
)

// stageTimeout is the timeout of each phase. It is longer than a phase takes on a busy machine.
const stageTimeout = 15 * time.Minute

// moved has the times and the requests of a migration.
type moved struct {
	Seconds float64 `json:"seconds"`
	// Phases has the seconds from the start to the beginning of each phase.
	Phases map[api.Phase]float64 `json:"phases"`
	// Requests has the requests that each process has sent in a phase.
	Requests map[api.Phase]account.Count `json:"requests"`
	// StatusBytes is the size of the migration with its status. StateBytes is the size of the largest ConfigMap with states.
	StatusBytes int `json:"statusBytes"`
	StateBytes  int `json:"stateBytes"`
}

// measureMove moves clusters by a ManagedClusterMigration, from its creation to phase Completed.
func (in *installation) measureMove(ctx context.Context, migration string, all []string) (moved, error) {
	scheme := ocm.Scheme()
	if err := api.AddToScheme(scheme); err != nil {
		return moved{}, err
	}
	global, err := client.New(in.fleet.source.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return moved{}, err
	}
	m := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: migration}, Spec: api.ManagedClusterMigrationSpec{
		From: api.HubName(in.fleet.source.Name), To: api.HubName(in.fleet.target.Name),
		SupportedConfigs: &api.MigrationConfig{StageTimeout: &metav1.Duration{Duration: stageTimeout}},
	}}
	for _, name := range all {
		m.Spec.IncludedManagedClusters = append(m.Spec.IncludedManagedClusters, api.ClusterName(name))
	}
	began := time.Now()
	if err := global.Create(ctx, m); err != nil {
		return moved{}, err
	}
	r := moved{Phases: map[api.Phase]float64{}, Requests: map[api.Phase]account.Count{}}
	counted, err := in.requests(ctx)
	if err != nil {
		return r, err
	}
	for m.Status.Phase != api.PhaseCompleted {
		if err := walk.Wait(ctx, 100*time.Millisecond); err != nil {
			return r, err
		}
		before := m.Status.Phase
		if err := global.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return r, err
		}
		if m.Status.Phase == before {
			continue
		}
		r.Phases[m.Status.Phase] = time.Since(began).Seconds()
		now, err := in.requests(ctx)
		if err != nil {
			return r, err
		}
		r.Requests[before], counted = now.Since(counted), now
		frame.Logf("%s after %.1f s; requests until then: %v", m.Status.Phase, r.Phases[m.Status.Phase], r.Requests[before])
		if m.Status.Phase == api.PhaseFailed || m.Status.Phase == api.PhaseRollbacking {
			return r, fmt.Errorf("the migration is in phase %s: %+v %+v", m.Status.Phase, m.Status.Conditions, m.Status.Failures)
		}
	}
	r.Seconds = time.Since(began).Seconds()
	return r, errors.Join(in.mustHaveMoved(ctx, all), r.measureState(ctx, global, m))
}

// mustHaveMoved fails unless each cluster is at the target, and the source has nothing of it.
func (in *installation) mustHaveMoved(ctx context.Context, all []string) error {
	for _, name := range all {
		if err := in.fleet.mustBeAt(in.fleet.target, name, 2); err != nil {
			return err
		}
		if err := in.fleet.target.Client.Get(ctx, client.ObjectKey{Namespace: name, Name: name + "-admin-kubeconfig"}, &corev1.Secret{}); err != nil {
			return fmt.Errorf("%s at the target: %w", name, err)
		}
		err := in.fleet.source.Client.Get(ctx, client.ObjectKey{Namespace: name, Name: name + "-admin-kubeconfig"}, &corev1.Secret{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("%s at the source: %w", name, errors.Join(err, errors.New("its Secret is left")))
		}
	}
	return nil
}

// measureState measures the objects in which the API server stores the migration, because an object has at most 1 MiB.
func (r *moved) measureState(ctx context.Context, global client.Client, m *api.ManagedClusterMigration) error {
	size := func(o any) (int, error) {
		text, err := json.Marshal(o)
		return len(text), err
	}
	states := &corev1.ConfigMapList{}
	if err := global.List(ctx, states, client.InNamespace(m.Namespace)); err != nil {
		return err
	}
	var err error
	if r.StatusBytes, err = size(m); err != nil {
		return err
	}
	for i := range states.Items {
		n, err := size(&states.Items[i])
		if err != nil {
			return err
		}
		r.StateBytes = max(r.StateBytes, n)
	}
	if max(r.StatusBytes, r.StateBytes) >= 1<<20 {
		return fmt.Errorf("the status has %d bytes, and the largest ConfigMap %d: want less than 1 MiB", r.StatusBytes, r.StateBytes)
	}
	return nil
}
