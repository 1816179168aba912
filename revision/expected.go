package revision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/revision/reference"
)

// expectedTypeOf is the type that all references expect of a revision, and the contradiction if
// they don't agree.
func expectedTypeOf(references []reference.Reference) (reference.ExpectedType, string) {
	var expected reference.ExpectedType
	var by *reference.Referrer
	for _, r := range references {
		switch {
		case r.Expected.Kind == "", r.ImpliedBy != "" && expected.Kind != "":
		case expected.Kind == "":
			expected, by = r.Expected, r.Referrer
		case expected.Kind != r.Expected.Kind:
			return expected, fmt.Sprintf("%s %s takes it for a %s, %s %s for a %s",
				by.Kind, by.Name, expected.Kind, r.Referrer.Kind, r.Referrer.Name, r.Expected.Kind)
		}
	}
	return expected, ""
}

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

// inUse says what is running and uses the revision, which messages call by a word, and
// what is not ready. A controller's template is written to all objects that it controls,
// whichever revisions they name.
func inUse(references []reference.Reference, word string) (running, unready string) {
	for _, r := range reference.Explicit(references) {
		h, owned := r.Referrer, r.Referrer.Controlled
		name := h.Kind + " " + h.Name
		if h.Running {
			running = cmp.Or(running, name+" runs by "+word)
		}
		if h.NotReady != "" {
			unready = cmp.Or(unready, name+": "+h.NotReady)
		}
		if owned == nil {
			continue
		}
		name = fmt.Sprintf("%s %s, to which all of the template of %s is written,", owned.Kind, owned.Name, name)
		if owned.Running {
			running = cmp.Or(running, name+" is running")
		}
		if owned.NotReady != "" {
			unready = cmp.Or(unready, name+" is not ready: "+owned.NotReady)
		}
	}
	return running, unready
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
