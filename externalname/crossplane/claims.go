package crossplane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/externalname"
)

const (
	// TypeUniqueName is the type of the condition that reports several objects with one
	// external name. Objects that never shared a name don't have it. Its reasons are
	// [externalname.ReasonShared], [externalname.ReasonDeletionRefused] and [externalname.ReasonUnique].
	TypeUniqueName = "UniqueExternalName"

	reasonShared          event.Reason = "ExternalNameShared"
	reasonDeletionRefused event.Reason = "DeletionRefused"
)

// claims records which objects of a kind have the same external name. Two objects that manage one external resource
// undo each other's updates, and the deletion of one would delete the resource for both. The policies of the objects may
// share the work on purpose, so a shared name is reported, and only the deletion is refused.
type claims struct {
	client  client.Client
	list    schema.GroupVersionKind
	events  *announcer
	refused *announcer

	mu     sync.Mutex
	byName map[claim]map[types.UID]types.NamespacedName
}

// claim is a name within one external system.
type claim struct{ system, name string }

func newClaims(c client.Client, kind schema.GroupVersionKind, recorder event.Recorder) *claims {
	kind.Kind += "List"
	return &claims{
		client: c, list: kind, events: newAnnouncer(recorder, reasonShared), refused: newAnnouncer(recorder, reasonDeletionRefused),
		byName: map[claim]map[types.UID]types.NamespacedName{},
	}
}

// report adds the object's claim, and sets the condition if other objects have the same claim.
func (c *claims) report(ctx context.Context, mg resource.Managed, name string) {
	others := c.otherClaimants(ctx, mg, claim{system: systemOf(mg), name: name})
	before := mg.GetCondition(TypeUniqueName)
	if len(others) == 0 {
		c.events.reset(mg)
		if before.Status == corev1.ConditionUnknown {
			return
		}
	}
	unique := condition{kind: TypeUniqueName, status: corev1.ConditionTrue, reason: externalname.ReasonUnique.Name, generation: mg.GetGeneration()}
	if len(others) > 0 {
		unique.status, unique.reason = corev1.ConditionFalse, externalname.ReasonShared.Name
		unique.message = fmt.Sprintf("Other objects have the external name %q: %s.", name, strings.Join(others, ", "))
		c.events.announce(mg, before.Message, unique.message)
	}
	setCondition(mg, unique)
}

// otherClaimants lists the objects that still have the name, in a stable order.
func (c *claims) otherClaimants(ctx context.Context, mg resource.Managed, of claim) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byName[of] == nil {
		c.byName[of] = map[types.UID]types.NamespacedName{}
	}
	c.byName[of][mg.GetUID()] = client.ObjectKeyFromObject(mg)
	var list []string
	for uid, key := range c.byName[of] {
		if uid == mg.GetUID() {
			continue
		}
		other := copyOf(mg)
		err := c.client.Get(ctx, key, other)
		if client.IgnoreNotFound(err) != nil {
			continue
		}
		if err != nil || other.GetUID() != uid || other.GetAnnotations()[AnnotationBoundName] != of.name {
			delete(c.byName[of], uid)
			continue
		}
		if !meta.WasDeleted(other) {
			list = append(list, key.String())
		}
	}
	slices.Sort(list)
	return list
}

// others lists the objects other than mg that have its external name, in a stable order. It leaves out those that only observe, and
// those that are being deleted as well. It reads all objects of the kind from the cache, because the claims are not complete after a
// start.
func (c *claims) others(ctx context.Context, mg resource.Managed, has func(resource.Managed) bool) ([]string, error) {
	object, err := c.client.Scheme().New(c.list)
	if err != nil {
		return nil, fmt.Errorf("list the objects of the kind: %w", err)
	}
	list, ok := object.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("list the objects of the kind: %T is not a list", object)
	}
	if err := c.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the objects of the kind: %w", err)
	}
	var found []string
	err = apimeta.EachListItem(list, func(item runtime.Object) error {
		other, ok := item.(resource.Managed)
		if ok && other.GetUID() != mg.GetUID() && !meta.WasDeleted(other) && !observesOnly(other) && systemOf(other) == systemOf(mg) && has(other) {
			found = append(found, client.ObjectKeyFromObject(other).String())
		}
		return nil
	})
	slices.Sort(found)
	return found, err
}

// observesOnly reports whether an object changes no external resource, and creates none.
func observesOnly(mg resource.Managed) bool {
	policies := mg.GetManagementPolicies()
	return len(policies) == 1 && policies[0] == policyObserve
}

// refuse sets the condition of an object whose deletion is refused, because others have its external name.
func (c *claims) refuse(mg resource.Managed, err *SharedNameError) {
	before := mg.GetCondition(TypeUniqueName)
	c.refused.announce(mg, before.Message, err.Error())
	setCondition(mg, condition{
		kind: TypeUniqueName, status: corev1.ConditionFalse, reason: externalname.ReasonDeletionRefused.Name,
		message: err.Error(), generation: mg.GetGeneration(),
	})
}

// drop removes the claim of an object whose external resource is being deleted.
func (c *claims) drop(mg resource.Managed, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := claim{system: systemOf(mg), name: name}
	delete(c.byName[of], mg.GetUID())
	if len(c.byName[of]) == 0 {
		delete(c.byName, of)
	}
}

// systemOf returns the ProviderConfig of an object, which identifies its external system.
func systemOf(mg resource.Managed) string {
	switch of := mg.(type) {
	case resource.TypedProviderConfigReferencer:
		if ref := of.GetProviderConfigReference(); ref != nil {
			system := ref.Kind + "/" + ref.Name
			if !strings.HasPrefix(ref.Kind, "Cluster") {
				system = mg.GetNamespace() + "/" + system
			}
			return system
		}
	case resource.ProviderConfigReferencer:
		if ref := of.GetProviderConfigReference(); ref != nil {
			return ref.Name
		}
	}
	return ""
}
