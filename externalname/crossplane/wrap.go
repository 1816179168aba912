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

// Rule is one rule of the contract, for the client of a provider that exists. The rules are
// independent of each other, so that a provider adopts them one by one. What needs to act
// before crossplane-runtime connects, which is the recovery after an interrupted creation, is
// for [Resource] only.
type Rule func(managed.ExternalClient) managed.ExternalClient

// Wrap returns a client that follows the rules. The first rule sees a call first.
func Wrap(inner managed.ExternalClient, rules ...Rule) managed.ExternalClient {
	for i := len(rules) - 1; i >= 0; i-- {
		inner = rules[i](inner)
	}
	return inner
}

// fns is a client of which a rule replaces functions.
func fns(inner managed.ExternalClient) managed.ExternalClientFns {
	return managed.ExternalClientFns{
		ObserveFn: inner.Observe, CreateFn: inner.Create, UpdateFn: inner.Update, DeleteFn: inner.Delete, DisconnectFn: inner.Disconnect,
	}
}

// NamesMustParse refuses an object whose external name is neither canonical nor of a legacy
// form, before the provider sends a request. The provider sees the names as they are.
func NamesMustParse[K any](scheme externalname.Scheme[K]) Rule {
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := fns(inner)
		c.ObserveFn = func(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
			if _, err := scheme.Read(meta.GetExternalName(mg), mg.GetName()); err != nil {
				return managed.ExternalObservation{}, err
			}
			return inner.Observe(ctx, mg)
		}
		return c
	}
}

// UnnamedIsAbsent reports an object without an external name as absent, so that nothing is
// adopted that the user has not named.
func UnnamedIsAbsent() Rule {
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := fns(inner)
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
		c := fns(inner)
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

// ObserveKeepsSpec drops what the provider's Observe changes of the object except its status
// and its conditions, and never late-initializes the spec. Names that Observe sets are kept by
// [NamesArePersisted] before it.
func ObserveKeepsSpec() Rule {
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := fns(inner)
		c.ObserveFn = func(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
			observed := copyOf(mg)
			observation, err := inner.Observe(ctx, observed)
			observation.ResourceLateInitialized = false
			mg.SetAnnotations(observed.GetAnnotations())
			return observation, errors.Join(err, takeStatus(mg, observed))
		}
		return c
	}
}

// NamesArePersisted writes an external name that Observe or Update has set, by a patch of its
// own: crossplane-runtime persists nothing after Update, and after Observe only under some
// policies.
func NamesArePersisted(m manager.Manager) Rule {
	j := journal{client: m.GetClient(), live: m.GetAPIReader()}
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := fns(inner)
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

// FailedCreateKeepsName leaves the external name as it was if Create fails:
// crossplane-runtime would persist what Create has set before it failed.
func FailedCreateKeepsName() Rule {
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := fns(inner)
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

// DiffIsReported sets the condition [TypeDrift], and records one event for each distinct diff. The
// rule is made once for a kind, since it remembers what it has recorded.
// Secrets in the provider's diff are the provider's to redact.
func DiffIsReported(recorder event.Recorder) Rule {
	drift := newAnnouncer(recorder, reasonDiffers)
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := fns(inner)
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

// DeleteAcceptsNotFound takes an error that isNotFound accepts for a deletion that is done.
func DeleteAcceptsNotFound(isNotFound func(error) bool) Rule {
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := fns(inner)
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

// DeleteOnce does not delete a resource that the external system is deleting, as isDeleting
// reads from the status that Observe has written.
func DeleteOnce(isDeleting func(resource.Managed) bool) Rule {
	return func(inner managed.ExternalClient) managed.ExternalClient {
		c := fns(inner)
		c.DeleteFn = func(ctx context.Context, mg resource.Managed) (managed.ExternalDelete, error) {
			if isDeleting(mg) {
				return managed.ExternalDelete{}, nil
			}
			return inner.Delete(ctx, mg)
		}
		return c
	}
}

// ConflictsAreReported keeps crossplane-runtime from requeueing without a word when the
// external system answers 409 in the form of a Kubernetes conflict.
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

// AnnotationUpdater returns the updater of critical annotations for clients that [Wrap]
// returns. crossplane-runtime's own writes, after a conflict, its whole stale map of annotations
// over what another client has written. This one writes only the external name and the
// annotations of the creation.
func AnnotationUpdater(m manager.Manager) managed.CriticalAnnotationUpdater {
	j := journal{client: m.GetClient(), live: m.GetAPIReader()}
	return managed.CriticalAnnotationUpdateFn(j.writeOwn)
}

// Finalizer returns the finalizer for clients that [Wrap] returns. crossplane-runtime's own writes
// the whole object, and takes over the old status from the answer, after Observe has set the new
// one. This one patches the finalizers.
func Finalizer(m manager.Manager) resource.Finalizer {
	return finalizer{
		journal: journal{client: m.GetClient(), live: m.GetAPIReader()}, name: managed.FinalizerName,
		removed: func(metav1.Object) {},
	}
}

// takeStatus takes over the status of the copy that was observed.
func takeStatus(to, from resource.Managed) error {
	if err := copyStatus(to, from); err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	return nil
}
