package revision

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fix are the facts that a remedy names. What is not needed is empty.
type Fix struct {
	// Owners refer to the revision, and one of them is to be its controller.
	Owners []metav1.OwnerReference
	// Labels are to be given a value each.
	Labels []string
	// Targets are served, and stashes at older versions can be converted to them.
	Targets []string
}

// owners are those who refer to a revision and may be its controller.
func (f facts) owners() []metav1.OwnerReference {
	var all []metav1.OwnerReference
	var seen []*Holder
	for _, r := range f.references {
		kind := r.Holder.Resource.GroupVersion().WithKind(r.Holder.Kind)
		if slices.Contains(seen, r.Holder) || !slices.ContainsFunc(f.family.Describe().Owners, func(o OwnerType) bool { return o.GroupKind() == kind.GroupKind() }) {
			continue
		}
		seen = append(seen, r.Holder)
		all = append(all, *metav1.NewControllerRef(&metav1.ObjectMeta{Name: r.Holder.Name, UID: r.Holder.UID}, kind))
	}
	return all
}

// maxNamed bounds how many referrers a message names.
const maxNamed = 5

// named says who refers to a revision.
func named(references []Reference) string {
	var all []string
	for _, r := range references {
		if one := r.Holder.Kind + " " + r.Holder.Name; !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		return "no reference to it was found"
	}
	more := ""
	if n := len(all) - maxNamed; n > 0 {
		all, more = all[:maxNamed], fmt.Sprintf(" and %d more", n)
	}
	return "referred to by " + strings.Join(all, ", ") + more
}

// unowned asks for a controller: a replacement would belong to nothing, and stay for ever.
func (j judgement) unowned(f facts) judgement {
	j.Fix.Owners = f.owners()
	return j.as(Blocked, ReasonNoController, ErrNoOwner.Error()+"; "+named(f.references))
}

// unconvertible says why nothing can be made of a stash.
func (j judgement) unconvertible(f facts, s Stash, err error) judgement {
	var missing *MissingLabelsError
	var none *ConversionError
	known := f.family.Describe()
	switch {
	case errors.Is(err, ErrNoOwner):
		return j.unowned(f)
	case errors.As(err, &missing):
		j.Fix.Labels = missing.Labels
		return j.as(Blocked, ReasonLabelsMissing, missing.Error())
	case errors.As(err, &none) && (!slices.Contains(known.Versions, s.Version) || !slices.Contains(known.Targets, j.Target) && f.policy.Target == ""):
		return j.as(Blocked, ReasonUnknownVersion, fmt.Sprintf("it is at %s, the definition stores %s, and this release converts %s to %s",
			s.Version, f.definitions[s.Definition].Storage, strings.Join(older(known), ", "), strings.Join(known.Targets, ", ")))
	case errors.As(err, &none):
		j.Fix.Targets = f.definitions[s.Definition].Reachable(known.Targets)
	}
	return j.as(Blocked, ReasonUnconvertible, err.Error())
}

// older are the versions that there are conversions from.
func older(d Description) []string {
	return slices.DeleteFunc(slices.Clone(d.Versions), func(v string) bool { return slices.Contains(d.Targets, v) })
}
