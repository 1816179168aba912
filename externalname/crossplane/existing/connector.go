package existing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// Kind is a kind of an existing provider.
type Kind[K any] struct {
	// Kind is the managed resource.
	Kind schema.GroupVersionKind
	// Names is the form of the external names.
	Names externalname.Scheme[K]
	// Connector is the provider's own.
	Connector managed.ExternalConnector
	// Creations is set for a kind whose client creates asynchronously, as Upjet does by default: Create returns before the
	// outcome is known, and without a name.
	Creations *Creations
	// Forget drops what the connector remembers of an object beyond one pass: a Terraform state, which Upjet keeps in
	// memory (RemoveTracker of its OperationTrackerStore). Without it, a provider that remembers has to be restarted
	// after a user has changed an external name.
	Forget func(mg resource.Object) error
}

// Observed is an external resource as the provider's client has observed it.
type Observed struct {
	// Object is a copy of the managed resource, with what the client has written to it.
	Object resource.Managed
	// Observation is the client's answer.
	Observation managed.ExternalObservation

	client managed.ExternalClient
	// before are the annotations of the object before the observation.
	before map[string]string
}

// WrapConnector returns the resource that follows the contract with an existing connector. Its options are added to
// those of the provider's reconciler, after them:
//
//	options, err := existing.WrapConnector(kind).Options(mgr, recorder)
//	managed.NewReconciler(mgr, of, append(opts, options...)...)
func WrapConnector[K any](kind Kind[K]) crossplane.Resource[resource.Managed, K, Observed] {
	return crossplane.Resource[resource.Managed, K, Observed]{
		Kind: kind.Kind, Names: kind.Names,
		Connect: func(_ context.Context, mg resource.Managed) (crossplane.External[resource.Managed, K, Observed], error) {
			p := &pass[K]{Kind: kind, object: mg, absent: map[string]managed.ExternalClient{}}
			return p.external(), nil
		},
		Removed: func(mg metav1.Object) {
			if kind.Creations != nil {
				kind.Creations.forget(mg.GetUID(), types.NamespacedName{Namespace: mg.GetNamespace(), Name: mg.GetName()})
			}
			if object, ok := mg.(resource.Object); ok && kind.Forget != nil {
				_ = kind.Forget(object) // The object is gone, and its UID does not come back.
			}
		},
	}
}

// pass is one pass over one object.
type pass[K any] struct {
	Kind[K]

	object resource.Managed
	// absent are the clients that have found no resource, by the name in the annotation. Create uses one of them, since a
	// client remembers what it has observed.
	absent map[string]managed.ExternalClient
	// last is the client that has observed the resource by its name.
	last   Observed
	opened []managed.ExternalClient
}

func (p *pass[K]) external() crossplane.External[resource.Managed, K, Observed] {
	e := crossplane.External[resource.Managed, K, Observed]{
		Get: p.get, Create: p.create, Update: p.update, Delete: p.delete,
		Mirror: mirror, Diff: diff, Lifecycle: lifecycle, Annotations: furtherAnnotations,
		Connection: func(o Observed) managed.ConnectionDetails { return o.Observation.ConnectionDetails },
		Operation:  crossplane.Operation[resource.Managed, K]{Await: p.await},
		Close:      p.close,
	}
	for _, form := range p.Names.Legacy {
		if form.Content == externalname.ContentHint {
			e.Find = p.find
		}
	}
	return e
}

// observe asks the provider's client for the resource with the name; empty means none.
func (p *pass[K]) observe(ctx context.Context, name string) (Observed, error) {
	mg := copyOf(p.object)
	setName(mg, name)
	before := maps.Clone(mg.GetAnnotations())
	external, err := p.Connector.Connect(ctx, mg)
	if err != nil {
		return Observed{}, err
	}
	p.opened = append(p.opened, external)
	setReadyUnknown(mg)
	observation, err := external.Observe(ctx, mg)
	if err == nil && !observation.ResourceExists {
		p.absent[name] = external
	}
	return Observed{Object: mg, Observation: observation, client: external, before: before}, err
}

func copyOf(mg resource.Managed) resource.Managed {
	return mg.DeepCopyObject().(resource.Managed) //nolint:forcetypeassert // A copy has the type of the original.
}

// setName replaces the annotations, which copies may share.
func setName(mg resource.Managed, name string) {
	annotations := maps.Clone(mg.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, meta.AnnotationKeyExternalName)
	if name != "" {
		annotations[meta.AnnotationKeyExternalName] = name
	}
	mg.SetAnnotations(annotations)
}

// setReadyUnknown makes visible whether the client sets the condition: crossplane-runtime sets it, too.
func setReadyUnknown(mg resource.Managed) {
	c := mg.GetCondition("Ready")
	c.Status, c.Reason, c.Message = corev1.ConditionUnknown, "", ""
	mg.SetConditions(c)
}

func (p *pass[K]) get(ctx context.Context, key K) (Observed, error) {
	name, err := p.Names.Codec.Format(key)
	if err != nil {
		return Observed{}, err
	}
	observed, found, err := p.named(ctx, name)
	if err == nil && found != "" && found != name {
		if err := p.forget(name, found); err != nil {
			return Observed{}, err
		}
		observed, found, err = p.named(ctx, name)
		if err == nil && found != "" && found != name {
			err = &otherError{name: name, found: found}
		}
	}
	switch {
	case err != nil:
		return Observed{}, err
	case !observed.Observation.ResourceExists:
		return Observed{}, crossplane.ErrNotFound
	}
	p.last = observed
	return observed, nil
}

// otherError means that the client has returned another resource than the one that was asked for.
type otherError struct{ name, found string }

func (e *otherError) Error() string {
	return fmt.Sprintf("the provider's client has returned external resource %q in place of %q", e.found, e.name)
}

// named observes a resource, and returns the name that the client gives it.
func (p *pass[K]) named(ctx context.Context, name string) (Observed, string, error) {
	observed, err := p.observe(ctx, name)
	if err != nil || !observed.Observation.ResourceExists {
		return observed, "", err
	}
	found, err := p.nameIn(observed.Object)
	return observed, found, err
}

// nameIn returns the canonical name in the annotation; empty if there is none.
func (p *pass[K]) nameIn(mg resource.Managed) (string, error) {
	reading, err := p.Names.Read(meta.GetExternalName(mg), mg.GetName())
	if err != nil {
		return "", fmt.Errorf("the provider's client has set an external name that the kind does not accept: %w", err)
	}
	return reading.Name, nil
}

// forget makes the client read the name in place of what it remembers. If the name is the one under which the resource
// was last seen, the client has found it under another name by itself: to forget that would lose the resource.
func (p *pass[K]) forget(name, found string) error {
	other := &otherError{name: name, found: found}
	switch {
	case p.object.GetAnnotations()[crossplane.AnnotationBoundName] == name && meta.GetExternalName(p.object) == name:
		return fmt.Errorf("%w: if the external system has renamed it, set the external name", other)
	case p.Forget == nil:
		return fmt.Errorf("%w: restart the provider, which remembers it", other)
	}
	return p.Forget(p.object)
}

// find has the client look a legacy name up that does not identify the resource by itself. A resource without a name is
// never looked up.
func (p *pass[K]) find(ctx context.Context, mg resource.Managed) ([]K, error) {
	name := meta.GetExternalName(mg)
	reading, err := p.Names.Read(name, mg.GetName())
	if err != nil {
		return nil, err
	}
	if reading.Content != externalname.ContentHint {
		return nil, fmt.Errorf("create: %w", crossplane.ErrOutcomeUnknown)
	}
	observed, err := p.observe(ctx, name)
	if err != nil || !observed.Observation.ResourceExists {
		return nil, err
	}
	reading, err = p.Names.Read(meta.GetExternalName(observed.Object), mg.GetName())
	if err == nil && !reading.HasKey() {
		err = fmt.Errorf("the provider's client has found the resource, and has not replaced the legacy name %q", name)
	}
	if err != nil {
		return nil, err
	}
	return []K{reading.Key}, nil
}

func (p *pass[K]) create(ctx context.Context, mg resource.Managed) (crossplane.Created[K], error) {
	creator, name, err := p.creator(ctx, mg)
	if err != nil {
		return crossplane.Created[K]{}, err
	}
	setName(mg, name)
	if p.Creations != nil {
		operation := p.Creations.begin(mg.GetUID(), client.ObjectKeyFromObject(mg))
		// Upjet begins an operation and returns the error of the one before.
		_, _ = creator.Create(ctx, mg)
		return crossplane.Pending[K](operation), nil
	}
	creation, err := creator.Create(ctx, mg)
	if err != nil {
		if answerLost(err) {
			err = fmt.Errorf("%w: %w", crossplane.ErrOutcomeUnknown, err)
		}
		return crossplane.Created[K]{}, err
	}
	created := crossplane.Created[K]{Connection: creation.ConnectionDetails}
	reading, err := p.Names.Read(meta.GetExternalName(mg), mg.GetName())
	switch {
	case err != nil:
		return created, fmt.Errorf("%w: the provider's client has created, and has set an external name that the kind does not accept: %w", crossplane.ErrOutcomeUnknown, err)
	case !reading.HasKey():
		return created, fmt.Errorf("%w: the provider's client has created, and has set no external name", crossplane.ErrOutcomeUnknown)
	}
	created.Key = reading.Key
	return created, nil
}

// creator returns the client that has found no resource with the name of the object. Without a name, a client that finds
// a resource has found it by the spec.
func (p *pass[K]) creator(ctx context.Context, mg resource.Managed) (managed.ExternalClient, string, error) {
	name := meta.GetExternalName(mg)
	if reading, err := p.Names.Read(name, mg.GetName()); err == nil && reading.HasKey() {
		name = reading.Name
	}
	if absent, ok := p.absent[name]; ok {
		return absent, name, nil
	}
	observed, err := p.observe(ctx, name)
	if err != nil {
		return nil, "", err
	}
	if !observed.Observation.ResourceExists {
		return observed.client, name, nil
	}
	found := meta.GetExternalName(observed.Object)
	return nil, "", fmt.Errorf("%w: the provider's client finds %q without its name", crossplane.ErrAlreadyExists, found)
}

// await follows an asynchronous creation that this process has begun. What another process has begun is not known: it may
// have ended with or without a resource.
func (p *pass[K]) await(ctx context.Context, operation string) (key K, err error) {
	if p.Creations == nil || !p.Creations.has(p.object.GetUID(), operation) {
		return key, crossplane.ErrOperationNotFound
	}
	observed, err := p.observe(ctx, "")
	if err != nil {
		return key, err
	}
	if !observed.Observation.ResourceExists {
		return key, p.Creations.result(client.ObjectKeyFromObject(p.object))
	}
	reading, err := p.Names.Read(meta.GetExternalName(observed.Object), p.object.GetName())
	if err == nil && !reading.HasKey() {
		err = crossplane.ErrOperationRunning
	}
	return reading.Key, err
}

// update observes after the update, since a client may write a changed name only then.
func (p *pass[K]) update(ctx context.Context, mg resource.Managed, key K, observed Observed) (K, error) {
	if _, err := observed.client.Update(ctx, mg); err != nil {
		return key, err
	}
	if !p.Names.Codec.Describe().Mutable() {
		return key, nil
	}
	name, err := p.Names.Codec.Format(key)
	if err != nil {
		return key, err
	}
	after, found, err := p.named(ctx, name)
	if err != nil || !after.Observation.ResourceExists || found == "" {
		return key, err
	}
	return p.Names.Codec.Parse(found)
}

func (p *pass[K]) delete(ctx context.Context, _ K) error {
	if p.last.client == nil {
		return errors.New("delete: the resource was not observed")
	}
	_, err := p.last.client.Delete(ctx, copyOf(p.object))
	return err
}

// mirror copies the status. The caller reports a type without one.
func mirror(mg resource.Managed, observed Observed) {
	from, to := reflect.ValueOf(observed.Object).Elem().FieldByName("Status"), reflect.ValueOf(mg).Elem().FieldByName("Status")
	if from.IsValid() && to.IsValid() {
		to.Set(from)
	}
}

// diff returns what differs if the client says that something does. Under the policy Observe, Upjet does not compare.
func diff(_ resource.Managed, observed Observed) []crossplane.Difference {
	same := observed.Observation.ResourceUpToDate
	switch policies := observed.Object.GetManagementPolicies(); {
	case same && (len(policies) != 1 || policies[0] != "Observe"):
		return nil
	case observed.Observation.Diff != "":
		return []crossplane.Difference{{Field: "spec.forProvider", Message: observed.Observation.Diff}}
	}
	list, err := differences(observed.Object)
	if err != nil {
		return []crossplane.Difference{{Field: "spec.forProvider", Message: err.Error()}}
	}
	if len(list) == 0 && !same {
		return []crossplane.Difference{{Field: "spec.forProvider", Message: "the provider's client does not say what differs"}}
	}
	return list
}

// lifecycle reads the condition Ready if the client has set it.
func lifecycle(observed Observed) crossplane.Lifecycle {
	switch ready := observed.Object.GetCondition("Ready"); {
	case ready.Status != corev1.ConditionFalse:
		return crossplane.Lifecycle{State: crossplane.Ready, Message: ready.Message}
	case ready.Reason == "Creating":
		return crossplane.Lifecycle{State: crossplane.Creating, Message: ready.Message}
	case ready.Reason == "Deleting":
		return crossplane.Lifecycle{State: crossplane.Deleting, Message: ready.Message}
	default:
		return crossplane.Lifecycle{State: crossplane.Failed, Message: ready.Message}
	}
}

// furtherAnnotations returns the annotations that the client has set.
func furtherAnnotations(observed Observed) map[string]string {
	set := map[string]string{}
	for key, value := range observed.Object.GetAnnotations() {
		if before, ok := observed.before[key]; !ok || before != value {
			set[key] = value
		}
	}
	return set
}

func (p *pass[K]) close(ctx context.Context) error {
	var all []error
	for _, external := range p.opened {
		all = append(all, external.Disconnect(ctx))
	}
	return errors.Join(all...)
}
