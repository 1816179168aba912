package database

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/test/jobservice"
)

// SetupByHand adds a controller of the same kind that is written on crossplane-runtime alone, as authors write it. It has no
// guards of package crossplane: the external name is the ID of the operation until Observe knows the GUID.
func SetupByHand(m manager.Manager, c jobservice.Client, o xpcontroller.Options, further ...managed.ReconcilerOption) error {
	name := managed.ControllerName(Kind.GroupKind().String())
	connector := managed.TypedExternalConnectorFn[*Database](func(context.Context, *Database) (managed.TypedExternalClient[*Database], error) {
		return &byHand{client: c}, nil
	})
	options := append([]managed.ReconcilerOption{
		managed.WithTypedExternalConnector(connector),
		managed.WithInitializers(),
		managed.WithManagementPolicies(),
		managed.WithPollInterval(o.PollInterval),
		managed.WithRecorder(event.NewAPIRecorder(m.GetEventRecorderFor(name))),
	}, further...)
	reconciler := managed.NewReconciler(m, resource.ManagedKind(Kind), options...)
	return ctrl.NewControllerManagedBy(m).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		WithEventFilter(resource.DesiredStateChanged()).
		For(&Database{}).
		Complete(ratelimiter.NewReconciler(name, reconciler, o.GlobalRateLimiter))
}

// operationPrefix begins the IDs of operations.
const operationPrefix = "op-"

type byHand struct {
	managed.NopDisconnecter

	client jobservice.Client
}

func (h *byHand) Observe(ctx context.Context, d *Database) (managed.ExternalObservation, error) {
	name := meta.GetExternalName(d)
	if name == "" {
		return managed.ExternalObservation{}, nil
	}
	swapped := strings.HasPrefix(name, operationPrefix)
	if swapped {
		o, err := h.client.Operation(ctx, name)
		switch {
		case err != nil:
			return managed.ExternalObservation{}, err
		case o.State == jobservice.Running:
			d.SetConditions(xpv2.Creating())
			return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
		case o.State != jobservice.Succeeded:
			return managed.ExternalObservation{}, fmt.Errorf("operation %s: %s", name, o.Message)
		}
		name = o.Database
		meta.SetExternalName(d, name)
	}
	observed, err := h.client.Read(ctx, name)
	if jobservice.Answered(err, http.StatusNotFound) {
		return managed.ExternalObservation{}, nil
	}
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	d.Status.AtProvider = observation(observed)
	if d.SetConditions(xpv2.Available()); observed.State == jobservice.Deleting {
		d.SetConditions(xpv2.Deleting())
	}
	return managed.ExternalObservation{
		ResourceExists: true, ResourceUpToDate: d.Status.AtProvider.Parameters == d.Spec.ForProvider, ResourceLateInitialized: swapped,
	}, nil
}

func (h *byHand) Create(ctx context.Context, d *Database) (managed.ExternalCreation, error) {
	operation, err := h.client.Create(ctx, jobservice.Database{Name: d.Spec.ForProvider.Name, Size: d.Spec.ForProvider.Size})
	if err == nil {
		meta.SetExternalName(d, operation)
	}
	return managed.ExternalCreation{}, err
}

func (h *byHand) Update(ctx context.Context, d *Database) (managed.ExternalUpdate, error) {
	f := d.Spec.ForProvider
	return managed.ExternalUpdate{}, h.client.Update(ctx, meta.GetExternalName(d), jobservice.Database{Name: f.Name, Size: f.Size})
}

func (h *byHand) Delete(ctx context.Context, d *Database) (managed.ExternalDelete, error) {
	if d.GetCondition(xpv2.TypeReady).Reason == xpv2.ReasonDeleting {
		return managed.ExternalDelete{}, nil
	}
	err := h.client.Delete(ctx, meta.GetExternalName(d))
	if jobservice.Answered(err, http.StatusNotFound) {
		return managed.ExternalDelete{}, nil
	}
	return managed.ExternalDelete{}, err
}
