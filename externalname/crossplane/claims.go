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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/externalname"
)

const (
	// TypeUniqueName is the type of the condition that reports several objects with one
	// external name. Objects that never shared a name don't have it. Its reasons are
	// [externalname.ReasonShared] and [externalname.ReasonUnique].
	TypeUniqueName = "UniqueExternalName"

	reasonShared event.Reason = "ExternalNameShared"
)

// claims records which objects of a kind have the same external name. Two objects that manage one external resource
// undo each other's updates, and the deletion of one deletes the resource for both. The policies of the objects may
// share the work on purpose, so a shared name is reported and not refused.
type claims struct {
	client client.Reader
	events *announcer

	mu     sync.Mutex
	byName map[claim]map[types.UID]types.NamespacedName
}

// claim is a name within one external system.
type claim struct{ system, name string }

func newClaims(c client.Reader, recorder event.Recorder) *claims {
	return &claims{client: c, events: newAnnouncer(recorder, reasonShared), byName: map[claim]map[types.UID]types.NamespacedName{}}
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
