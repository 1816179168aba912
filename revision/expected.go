package revision

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/revision/reference"
)

// controllerFor is the object to own the replacement of a revision without a controller, as
// backups restore them: the one object that refers to it, whose name its name begins with, and
// whose kind owns revisions.
func controllerFor(r *appsv1.ControllerRevision, references []reference.Reference, owners []OwnerType) *reference.Referrer {
	if metav1.GetControllerOfNoCopy(r) != nil {
		return nil
	}
	var found *reference.Referrer
	for _, ref := range references {
		if !ref.Writable() || ref.Referrer == found || !strings.HasPrefix(r.Name, ref.Referrer.Name+"-") || !owns(owners, ref.Referrer) {
			continue
		}
		if found != nil {
			return nil
		}
		found = ref.Referrer
	}
	return found
}

func owns(owners []OwnerType, h *reference.Referrer) bool {
	return slices.ContainsFunc(owners, func(o OwnerType) bool { return o.Kind == h.Kind && o.Group == h.Resource.Group })
}

// referenceStatuses are references for people, of which target is what they are to name.
func referenceStatuses(references []reference.Reference, target string) []ReferenceStatus {
	var all []ReferenceStatus
	for _, r := range references {
		state := ReferenceOld
		switch {
		case r.ImpliedBy != "":
			state = ReferenceImplied
		case r.Fixed:
			state = ReferenceFixed
		case r.Revision == target:
			state = ReferenceNew
		}
		all = append(all, ReferenceStatus{Kind: r.Referrer.Kind, Namespace: r.Referrer.Namespace, Name: r.Referrer.Name, Path: r.Path, State: state})
	}
	return all
}
