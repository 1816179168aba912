package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	"github.com/godwit-dev/godwit/test/process"
)

const (
	// heldWrites per resource: all of them together are a moment's work of a server that continues.
	heldWrites = 50
	// holdLimit is how long the writes wait, for most of which the server is stopped: less than the 34 s that an API server gives
	// a write (requestTimeoutUpperBound in k8s.io/apiserver/pkg/endpoints/handlers), and than a webhook's longest time limit.
	holdLimit = 25 * time.Second
)

// measureStopped stops a second API server across the change of the storage version, while ordinary writes are in its
// admission. When it continues, it finishes them with the CRD that it knew when they began.
func (b *bench) measureStopped(ctx context.Context, contestants []contestant) (err error) {
	measure.Say("stopped: a second API server is stopped across the change of the storage version, with %d writes of each resource under way", heldWrites)
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
		err = errors.Join(err, b.removeLease(context.WithoutCancel(ctx), second.Identity()))
	}()
	g := newGate()
	defer g.close()
	remove, err := g.install(ctx, b.plane.Config())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove(context.WithoutCancel(ctx))) }()
	writes, err := connect(ctx, second, all)
	if err != nil {
		return err
	}
	if err := each(ctx, all, func(s *subject) (err error) {
		s.migration, err = s.prepare(ctx, s.resource)
		return err
	}); err != nil {
		return err
	}
	return b.stopAcrossFlip(ctx, all, stoppedServer{second, g, writes})
}

// stoppedServer is the second server, and the writes that it is to have under way.
type stoppedServer struct {
	*controlplane.APIServer
	gate   *gate
	writes []func(context.Context) error
}

func (b *bench) stopAcrossFlip(ctx context.Context, all []*subject, second stoppedServer) error {
	answers := second.begin(ctx)
	until := time.Now().Add(holdLimit)
	if err := second.gate.awaitHeld(ctx, len(second.writes)); err != nil {
		return err
	}
	if err := second.Pause(ctx); err != nil {
		return err
	}
	if err := together(ctx, all, func(s *subject) (err error) {
		if err := s.resource.FlipAndProbe(ctx); err != nil {
			return err
		}
		if err := s.migration.begin(ctx); err != nil {
			return err
		}
		s.residue.During, err = s.look(ctx, s.wait(ctx, max(0, time.Until(until).Round(time.Second))))
		return err
	}); err != nil {
		return err
	}
	second.gate.open()
	if err := second.Continue(); err != nil {
		return err
	}
	if err := answers(); err != nil {
		return err
	}
	return together(ctx, all, func(s *subject) (err error) {
		s.residue.After, err = s.look(ctx, s.wait(ctx, recoveryLimit))
		return err
	})
}

// connect opens the connections for the writes, and returns them once the server sends writes to the gate.
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
		write := func(ctx context.Context, i int, label string, o metav1.PatchOptions) error {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, gateLabel, label)
			_, err := objects.Patch(ctx, widget.Name(i), types.MergePatchType, patch, o)
			return err
		}
		if err := process.Poll(ctx, "the second server to use the gate", func(ctx context.Context) error {
			err := write(ctx, 0, refuse, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil && strings.Contains(err.Error(), "denied the request") {
				return nil
			}
			return fmt.Errorf("a write is answered with %v", err) //nolint:errorlint // nil where it should be denied
		}); err != nil {
			return nil, err
		}
		for i := range min(heldWrites, s.resource.Len()) {
			writes = append(writes, func(ctx context.Context) error { return write(ctx, i, hold, metav1.PatchOptions{}) })
		}
	}
	return writes, nil
}

// begin sends the writes. What it returns waits for the answers to all of them.
func (s stoppedServer) begin(ctx context.Context) func() error {
	errs := make([]error, len(s.writes))
	var answered sync.WaitGroup
	for i, write := range s.writes {
		answered.Go(func() { errs[i] = write(ctx) })
	}
	return func() error {
		answered.Wait()
		failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
		measure.Say("stopped: the server has answered %d writes that were under way in it, %d of them with an error", len(s.writes), len(failed))
		if len(failed) == len(s.writes) {
			return fmt.Errorf("write through the server that was stopped: %w", failed[0])
		}
		return nil
	}
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
