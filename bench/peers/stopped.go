package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/godwit-dev/godwit/bench/internal/measure"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// queuedWrites per resource: together, fewer than what one connection carries at once.
const queuedWrites = 50

// queueTime is what the writes have to arrive at a server that is stopped.
const queueTime = time.Second

// measureStopped stops a second API server across the change of the storage version, and lets ordinary writes wait for it.
// When it continues, it handles them with what it knew before the change.
func (b *bench) measureStopped(ctx context.Context, contestants []contestant) (err error) {
	measure.Say("stopped: a second API server is stopped across the change of the storage version")
	all, err := b.subjects(ctx, "stopped", contestants)
	if err != nil {
		return err
	}
	defer b.finish(ctx, all)
	second, err := b.plane.StartSecond(ctx, "bench-second")
	if err != nil {
		return err
	}
	defer func() {
		_ = second.Stop()
		if leave := b.removeLease(context.WithoutCancel(ctx), second.Identity()); leave != nil && err == nil {
			err = leave
		}
	}()
	writers, err := connect(ctx, second, all)
	if err != nil {
		return err
	}
	if err := each(ctx, all, func(s *subject) (err error) {
		s.migration, err = s.prepare(ctx, s.resource)
		return err
	}); err != nil {
		return err
	}
	if err := second.Pause(ctx); err != nil {
		return err
	}
	if err := each(ctx, all, func(s *subject) error {
		if err := s.resource.FlipAndProbe(ctx); err != nil {
			return err
		}
		return s.migration.begin(ctx)
	}); err != nil {
		return err
	}
	if err := each(ctx, all, func(s *subject) (err error) {
		s.residue.During, err = s.look(ctx, s.wait(ctx, faultLimit/2))
		return err
	}); err != nil {
		return err
	}
	if err := resume(ctx, second, writers); err != nil {
		return err
	}
	return each(ctx, all, func(s *subject) (err error) {
		s.residue.After, err = s.look(ctx, s.wait(ctx, recoveryLimit))
		return err
	})
}

// connect opens the connections on which the writes will wait.
func connect(ctx context.Context, second *controlplane.APIServer, all []*subject) ([]func(context.Context) error, error) {
	config := second.Config()
	config.QPS = -1
	clients, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var writes []func(context.Context) error
	for _, s := range all {
		if err := controlplane.AwaitServed(ctx, config, s.resource.CRD()); err != nil {
			return nil, err
		}
		objects := clients.Resource(schema.GroupVersionResource{Group: s.resource.Group(), Version: "v1", Resource: widget.Plural}).Namespace(widget.Namespace)
		if _, err := objects.Get(ctx, widget.Name(0), metav1.GetOptions{}); err != nil {
			return nil, err
		}
		for i := range min(queuedWrites, s.resource.Len()) {
			writes = append(writes, func(ctx context.Context) error {
				_, err := objects.Patch(ctx, widget.Name(i), types.MergePatchType, []byte(`{"metadata":{"labels":{"written":"yes"}}}`), metav1.PatchOptions{})
				return err
			})
		}
	}
	return writes, nil
}

// resume sends the writes, continues the server, and returns when it has answered them all.
func resume(ctx context.Context, second *controlplane.APIServer, writes []func(context.Context) error) error {
	errs := make([]error, len(writes))
	var answered sync.WaitGroup
	for i, write := range writes {
		answered.Go(func() { errs[i] = write(ctx) })
	}
	select {
	case <-ctx.Done():
	case <-time.After(queueTime):
	}
	if err := second.Continue(); err != nil {
		return err
	}
	answered.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	measure.Say("stopped: the server has answered %d writes that waited for it, %d of them with an error", len(writes), len(errs))
	if len(errs) == len(writes) {
		return fmt.Errorf("write through the server that was stopped: %w", errs[0])
	}
	return nil
}

// removeLease removes a server that is gone for good from those that Godwit waits for.
func (b *bench) removeLease(ctx context.Context, identity string) error {
	clients, err := kubernetes.NewForConfig(b.plane.Config())
	if err != nil {
		return err
	}
	err = clients.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, identity, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the server has removed it
	}
	return err
}
