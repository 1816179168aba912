package revision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// claimOf is what all references take a revision for, and the contradiction if
// they don't agree.
func claimOf(references []Reference) (Claim, string) {
	var claim Claim
	var by *Holder
	for _, r := range references {
		switch {
		case r.Claim.Kind == "", r.ImpliedBy != "" && claim.Kind != "":
		case claim.Kind == "":
			claim, by = r.Claim, r.Holder
		case claim.Kind != r.Claim.Kind:
			return claim, fmt.Sprintf("%s %s takes it for a %s, %s %s for a %s",
				by.Kind, by.Name, claim.Kind, r.Holder.Kind, r.Holder.Name, r.Claim.Kind)
		}
	}
	return claim, ""
}

// adopter is who is to own the successor of a revision without a controller, as
// backups bring them back: who refers to it, is called as its name begins, and is of a
// kind that owns revisions.
func adopter(r *appsv1.ControllerRevision, references []Reference, owners []OwnerType) *Holder {
	if metav1.GetControllerOfNoCopy(r) != nil {
		return nil
	}
	var found *Holder
	for _, ref := range references {
		if !ref.writable() || ref.Holder == found || !strings.HasPrefix(r.Name, ref.Holder.Name+"-") || !owns(owners, ref.Holder) {
			continue
		}
		if found != nil {
			return nil
		}
		found = ref.Holder
	}
	return found
}

func owns(owners []OwnerType, h *Holder) bool {
	return slices.ContainsFunc(owners, func(o OwnerType) bool { return o.Kind == h.Kind && o.Group == h.Resource.Group })
}

// busy says what is running and uses the revision, which messages call by a word, and
// what is not ready. A controller's template is written to all objects that it controls,
// whichever revisions they name.
func busy(references []Reference, word string) (running, unready string) {
	for _, r := range direct(references) {
		h, owned := r.Holder, r.Holder.owned
		name := h.Kind + " " + h.Name
		if h.Running {
			running = cmp.Or(running, name+" runs by "+word)
		}
		if h.Unready != "" {
			unready = cmp.Or(unready, name+": "+h.Unready)
		}
		if owned == nil {
			continue
		}
		name = fmt.Sprintf("%s %s, to which all of the template of %s is written,", owned.Kind, owned.Name, name)
		if owned.Running {
			running = cmp.Or(running, name+" is running")
		}
		if owned.Unready != "" {
			unready = cmp.Or(unready, name+" is not ready: "+owned.Unready)
		}
	}
	return running, unready
}

// places are references for people, of which target is what they are to name.
func places(references []Reference, target string) []Place {
	var all []Place
	for _, r := range references {
		state := PlaceOld
		switch {
		case r.ImpliedBy != "":
			state = PlaceImplied
		case r.Fixed:
			state = PlaceFixed
		case r.Revision == target:
			state = PlaceNew
		}
		all = append(all, Place{Kind: r.Holder.Kind, Namespace: r.Holder.Namespace, Name: r.Holder.Name, Path: r.Path, State: state})
	}
	return all
}
