package revision

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/revision/reference"
)

// Fix are the facts that a remedy names. What is not needed is empty.
type Fix struct {
	// Owners refer to the revision. One of them should be its controller.
	Owners []reference.Owner
	// Labels are missing. Each needs a value that only a user knows.
	Labels []string
	// Targets are served, and objects at older versions can be converted to them.
	Targets []string
}

// owners are the referrers of a revision that may be its controller.
func (f facts) owners() []reference.Owner {
	var all []reference.Owner
	for _, r := range f.references {
		one := reference.Owner{Kind: r.Referrer.Kind, Name: r.Referrer.Name}
		if owns(f.family.Describe().Owners, r.Referrer) && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// maxNamed bounds how many referrers a message names.
const maxNamed = 5

// named says which objects refer to a revision.
func named(references []reference.Reference) string {
	var all []string
	for _, r := range references {
		if one := r.Referrer.Kind + " " + r.Referrer.Name; !slices.Contains(all, one) {
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
func (j decision) unowned(f facts) decision {
	j.Fix.Owners = f.owners()
	return j.with(Blocked, ReasonNoController, ErrNoOwner.Error()+"; "+named(f.references))
}

// unconvertible says why an object can't be converted.
func (j decision) unconvertible(f facts, s StoredObject, err error) decision {
	var missing *MissingLabelsError
	var none *ConversionError
	known := f.family.Describe()
	switch {
	case errors.Is(err, ErrNoOwner):
		return j.unowned(f)
	case errors.As(err, &missing):
		j.Fix.Labels = missing.Labels
		return j.with(Blocked, ReasonLabelsMissing, missing.Error())
	case errors.As(err, &none) && (!slices.Contains(known.Versions, s.Version) || !slices.Contains(known.Targets, j.Target) && f.policy.Target == ""):
		return j.with(Blocked, ReasonUnknownVersion, fmt.Sprintf("it is at %s, the CRD stores %s, and this release converts %s to %s",
			s.Version, f.crds[s.Resource].StorageVersion, strings.Join(older(known), ", "), strings.Join(known.Targets, ", ")))
	case errors.As(err, &none):
		j.Fix.Targets = f.crds[s.Resource].Reachable(known.Targets)
	}
	return j.with(Blocked, ReasonUnconvertible, err.Error())
}

// older are the versions that there are conversions from.
func older(d Description) []string {
	return slices.DeleteFunc(slices.Clone(d.Versions), func(v string) bool { return slices.Contains(d.Targets, v) })
}
