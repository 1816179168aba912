package crossplane

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/externalname"
)

// Rule is one rule of the contract, for the client of an existing provider. The rules are independent of each other, so
// a provider can adopt them one by one. Only [Resource] has the recovery after an interrupted creation, which must act
// before crossplane-runtime connects.
type Rule func(managed.ExternalClient) managed.ExternalClient

// Wrap returns a client that follows the rules. The first rule is the outermost one.
func Wrap(inner managed.ExternalClient, rules ...Rule) managed.ExternalClient {
	for i := len(rules) - 1; i >= 0; i-- {
		inner = rules[i](inner)
	}
	return inner
}

// functionsOf returns the functions of a client, for a rule to replace some.
func functionsOf(inner managed.ExternalClient) managed.ExternalClientFns {
	return managed.ExternalClientFns{
		ObserveFn: inner.Observe, CreateFn: inner.Create, UpdateFn: inner.Update, DeleteFn: inner.Delete, DisconnectFn: inner.Disconnect,
	}
}

// NamesMustParse refuses an object whose external name has neither the canonical nor a legacy form, before the provider
// sends a request. It does not change the names.
func NamesMustParse[K any](scheme externalname.Scheme[K]) Rule {
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := functionsOf(inner)
		c.ObserveFn = func(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
			if _, err := scheme.Read(meta.GetExternalName(mg), mg.GetName()); err != nil {
				return managed.ExternalObservation{}, err
			}
			return inner.Observe(ctx, mg)
		}
		return c
	}
}

// UnnamedIsAbsent reports the external resource of an object without an external name as absent, so that the provider
// adopts only resources that the user has named.
func UnnamedIsAbsent() Rule {
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := functionsOf(inner)
		c.ObserveFn = func(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
			if meta.GetExternalName(mg) == "" {
				return managed.ExternalObservation{}, nil
			}
			return inner.Observe(ctx, mg)
		}
		return c
	}
}

// AbsentNeedsCreate reports an error if the external resource does not exist and the policies
// don't allow Create. crossplane-runtime would report success, or call Update.
func AbsentNeedsCreate() Rule {
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := functionsOf(inner)
		c.ObserveFn = func(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
			observation, err := inner.Observe(ctx, mg)
			if err == nil && !observation.ResourceExists && !meta.WasDeleted(mg) && mustExist(mg.GetManagementPolicies()) {
				return managed.ExternalObservation{}, errMissing
			}
			return observation, err
		}
		return c
	}
}

// ObserveKeepsSpec drops all changes of the provider's Observe except those of the status and the conditions, and never
// late-initializes the spec. To keep names that Observe sets, put [NamesArePersisted] before it.
func ObserveKeepsSpec() Rule {
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := functionsOf(inner)
		c.ObserveFn = func(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
			observed := copyOf(mg)
			observation, err := inner.Observe(ctx, observed)
			observation.ResourceLateInitialized = false
			mg.SetAnnotations(observed.GetAnnotations())
			return observation, errors.Join(err, copyObservedStatus(mg, observed))
		}
		return c
	}
}

// NamesArePersisted patches an external name that Observe or Update has set: crossplane-runtime persists nothing after
// Update, and after Observe only under some policies.
func NamesArePersisted(m manager.Manager) Rule {
	j := journal{client: m.GetClient(), live: m.GetAPIReader()}
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := functionsOf(inner)
		c.ObserveFn = func(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
			before := maps.Clone(mg.GetAnnotations())
			observation, err := inner.Observe(ctx, mg)
			if err != nil || !observation.ResourceExists {
				return observation, err
			}
			return observation, persistName(ctx, j, mg, before)
		}
		c.UpdateFn = func(ctx context.Context, mg resource.Managed) (managed.ExternalUpdate, error) {
			before := maps.Clone(mg.GetAnnotations())
			update, err := inner.Update(ctx, mg)
			if err != nil {
				return update, err
			}
			return update, persistName(ctx, j, mg, before)
		}
		return c
	}
}

func persistName(ctx context.Context, j journal, mg resource.Managed, before map[string]string) error {
	name := meta.GetExternalName(mg)
	nameBefore := before[meta.AnnotationKeyExternalName]
	mg.SetAnnotations(before)
	if name == nameBefore {
		return nil
	}
	c := changes{}
	c.set(meta.AnnotationKeyExternalName, name)
	return j.writeCritical(ctx, mg, nameBefore, c)
}

// FailedCreateKeepsName restores the external name if Create fails: crossplane-runtime would persist a name that Create
// set before its failure.
func FailedCreateKeepsName() Rule {
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := functionsOf(inner)
		c.CreateFn = func(ctx context.Context, mg resource.Managed) (managed.ExternalCreation, error) {
			before := maps.Clone(mg.GetAnnotations())
			creation, err := inner.Create(ctx, mg)
			if err != nil {
				mg.SetAnnotations(before)
			}
			return creation, err
		}
		return c
	}
}

// DiffIsReported sets the condition [TypeDrift], and records one event for each distinct diff. Create one rule per
// kind: it remembers which diffs it has recorded. The provider must redact secrets in its diff.
func DiffIsReported(recorder event.Recorder) Rule {
	drift := newAnnouncer(recorder, reasonDiffers)
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := functionsOf(inner)
		c.ObserveFn = func(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
			observation, err := inner.Observe(ctx, mg)
			if err == nil && observation.ResourceExists {
				text := observation.Diff
				if text == "" && !observation.ResourceUpToDate {
					text = "the provider does not say what differs"
				}
				reportDrift(mg, drift, text)
			}
			return observation, err
		}
		c.UpdateFn = func(ctx context.Context, mg resource.Managed) (managed.ExternalUpdate, error) {
			update, err := inner.Update(ctx, mg)
			if err == nil {
				driftAfterUpdate(mg)
			}
			return update, err
		}
		return c
	}
}

// DeleteAcceptsNotFound treats an error for which isNotFound returns true as a completed deletion.
func DeleteAcceptsNotFound(isNotFound func(error) bool) Rule {
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := functionsOf(inner)
		c.DeleteFn = func(ctx context.Context, mg resource.Managed) (managed.ExternalDelete, error) {
			deletion, err := inner.Delete(ctx, mg)
			if err != nil && isNotFound(err) {
				err = nil
			}
			return deletion, err
		}
		return c
	}
}

// DeleteOnce does not delete a resource again that the external system is deleting. isDeleting reads this from the
// status that Observe has written.
func DeleteOnce(isDeleting func(resource.Managed) bool) Rule {
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := functionsOf(inner)
		c.DeleteFn = func(ctx context.Context, mg resource.Managed) (managed.ExternalDelete, error) {
			if isDeleting(mg) {
				return managed.ExternalDelete{}, nil
			}
			return inner.Delete(ctx, mg)
		}
		return c
	}
}

// ConflictsAreReported reports a 409 of the external system that has the form of a Kubernetes conflict.
// crossplane-runtime would requeue the object without reporting it.
func ConflictsAreReported() Rule {
	return func(inner managed.ExternalClient) managed.ExternalClient {
		return managed.ExternalClientFns{
			ObserveFn: func(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
				result, err := inner.Observe(ctx, mg)
				return result, external(err)
			},
			CreateFn: func(ctx context.Context, mg resource.Managed) (managed.ExternalCreation, error) {
				result, err := inner.Create(ctx, mg)
				return result, external(err)
			},
			UpdateFn: func(ctx context.Context, mg resource.Managed) (managed.ExternalUpdate, error) {
				result, err := inner.Update(ctx, mg)
				return result, external(err)
			},
			DeleteFn: func(ctx context.Context, mg resource.Managed) (managed.ExternalDelete, error) {
				result, err := inner.Delete(ctx, mg)
				return result, external(err)
			},
			DisconnectFn: inner.Disconnect,
		}
	}
}

// AnnotationUpdater returns the updater of critical annotations for clients of [Wrap]. After a conflict,
// crossplane-runtime's own updater overwrites other clients' annotations with its whole stale map. This one writes only
// the external name and the annotations of the creation.
func AnnotationUpdater(m manager.Manager) managed.CriticalAnnotationUpdater {
	j := journal{client: m.GetClient(), live: m.GetAPIReader()}
	return managed.CriticalAnnotationUpdateFn(j.writeOwn)
}

// Finalizer returns the finalizer for clients of [Wrap]. crossplane-runtime's own finalizer writes the whole object
// after Observe has set the new status, and takes the old status from the response. This one patches only the
// finalizers.
func Finalizer(m manager.Manager) resource.Finalizer {
	return finalizer{
		journal: journal{client: m.GetClient(), live: m.GetAPIReader()}, name: managed.FinalizerName,
		removed: func(metav1.Object) {},
	}
}

// copyObservedStatus copies the status of the observed copy.
func copyObservedStatus(to, from resource.Managed) error {
	if err := copyStatus(to, from); err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	return nil
}
