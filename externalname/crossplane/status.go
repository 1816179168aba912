package crossplane

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const reasonStatusInvalid event.Reason = "StatusInvalid"

// ReportsInvalidStatus returns a manager for managed.NewReconciler. If the API server refuses a status that the reconciler
// writes, an event and the condition Synced say so. crossplane-runtime logs it only: the conditions are part of the
// status that was refused, so that the object stays as it was, such as Creating. [Resource.Setup] does this by itself.
func ReportsInvalidStatus(m manager.Manager, recorder event.Recorder) manager.Manager {
	return &statusManager{Manager: m, client: &statusClient{Client: m.GetClient(), live: m.GetAPIReader(), events: newAnnouncer(recorder, reasonStatusInvalid)}}
}

type statusManager struct {
	manager.Manager

	client client.Client
}

func (m *statusManager) GetClient() client.Client { return m.client }

// statusClient reports statuses that the API server refuses.
type statusClient struct {
	client.Client

	live   client.Reader
	events *announcer
}

func (c *statusClient) Status() client.SubResourceWriter {
	return &statusWriter{SubResourceWriter: c.Client.Status(), report: c.report}
}

type statusWriter struct {
	client.SubResourceWriter

	report func(ctx context.Context, o client.Object, refused error) error
}

// Update implements client.SubResourceWriter. It returns the error of the API server also after it was reported.
func (w *statusWriter) Update(ctx context.Context, o client.Object, options ...client.SubResourceUpdateOption) error {
	err := w.SubResourceWriter.Update(ctx, o, options...)
	if !kerrors.IsInvalid(err) {
		return err
	}
	if reportErr := w.report(ctx, o, err); reportErr != nil {
		return fmt.Errorf("%w; the condition could not be written: %w", err, reportErr)
	}
	return err
}

// report writes the condition into the last status that was accepted.
func (c *statusClient) report(ctx context.Context, o client.Object, refused error) error {
	mg, ok := o.(resource.Managed)
	if !ok {
		return nil
	}
	live := copyOf(mg)
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(mg), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	invalid := condition{
		kind: typeSynced, status: corev1.ConditionFalse, reason: reasonReconcileError, generation: live.GetGeneration(),
		message: "the API server refuses the status, so that the object keeps an earlier one. " +
			"This is an error of the provider: Mirror and MirrorKey have to write a status.atProvider that the CRD accepts: " + clip(refused.Error()),
	}
	before := live.GetCondition(typeSynced)
	c.events.announce(mg, before.Message, invalid.message)
	if before.Reason == reasonReconcileError && before.Message == invalid.message && before.ObservedGeneration == invalid.generation {
		return nil
	}
	setCondition(live, invalid)
	return c.Client.Status().Update(ctx, live)
}
