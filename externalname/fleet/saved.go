package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/quote"
)

// Reasons why a saved name is not restored.
var (
	ReasonNotPausedYet = Reasons.Declare(godwit.Reason{
		Name: "NotPausedYet", UserAction: true,
		Meaning: "The managed resource is not paused: the provider may create a second external resource before it has its name.",
		Fix:     godwit.Do("annotate it with crossplane.io/paused=true, and restore again"),
	})
	ReasonNameDiffers = Reasons.Declare(godwit.Reason{
		Name: "NameDiffers", UserAction: true,
		Meaning: "The managed resource has another external name than the one that was saved.",
		Fix:     godwit.Do("see which name is right. --overwrite writes the saved one"),
	})
	ReasonNotMapped = Reasons.Declare(godwit.Reason{
		Name: "NotMapped", UserAction: true,
		Meaning: "The expressions for the namespace and the name of the replacement give none for the managed resource, or give several managed resources one replacement.",
		Fix:     godwit.Do("correct --to-namespace or --to-name, and save again"),
	})
)

// savedNamesVersion and savedNamesKind are the apiVersion and the kind of every [SavedNames].
const (
	savedNamesVersion = "externalname.godwit.dev/v1alpha1"
	savedNamesKind    = "ExternalNameBook"
)

// SavedNames has the external names of managed resources of any kinds, to rebuild a cluster without a backup of etcd.
type SavedNames struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	SavedAt    time.Time `json:"savedAt"`
	Names      []Name    `json:"names"`
}

// Name is the external name of one managed resource.
type Name struct {
	// Resource is the resource as kubectl accepts it, such as persons.example.org.
	Resource     string `json:"resource"`
	Namespace    string `json:"namespace,omitempty"`
	Name         string `json:"name"`
	ExternalName string `json:"externalName"`
	// Replacement is the managed resource that is to have the external resource instead; nil if this one keeps it.
	Replacement *Replacement `json:"replacement,omitempty"`
}

// Replacement is a managed resource of another kind, to which package handover hands an external resource over.
type Replacement struct {
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Mapping returns the replacement of a managed resource.
type Mapping func(ctx context.Context, o *unstructured.Unstructured) (Replacement, error)

// NewSavedNames returns saved names with their version and kind.
func NewSavedNames(savedAt time.Time, names []Name) SavedNames {
	return SavedNames{APIVersion: savedNamesVersion, Kind: savedNamesKind, SavedAt: savedAt.UTC().Truncate(time.Second), Names: names}
}

// ReadSavedNames parses JSON. It returns an error for another version or kind.
func ReadSavedNames(text []byte) (SavedNames, error) {
	var b SavedNames
	if err := json.Unmarshal(text, &b); err != nil {
		return SavedNames{}, fmt.Errorf("read the saved names: %w", err)
	}
	group, _, _ := strings.Cut(savedNamesVersion, "/")
	switch {
	case b.APIVersion == savedNamesVersion && b.Kind == savedNamesKind:
	case b.Kind == savedNamesKind && strings.HasPrefix(b.APIVersion, group+"/"):
		return SavedNames{}, fmt.Errorf("read the saved names: it is an %s of %s, and this release of Godwit reads %s: use the release that wrote it",
			savedNamesKind, quote.Line(b.APIVersion), savedNamesVersion)
	default:
		return SavedNames{}, fmt.Errorf("read the saved names: it is a %s of %s, want an %s of %s",
			quote.Line(b.Kind), quote.Line(b.APIVersion), savedNamesKind, savedNamesVersion)
	}
	return b, nil
}

// Save returns the external names of all managed resources in scope, with their replacements unless to is nil. leftOut are those
// that a restore can't write: without an external name, or without a replacement of their own. An external resource of one whose action
// is [Skip] exists, or may exist.
func (f *Fleet) Save(ctx context.Context, to Mapping) (names []Name, leftOut []Item, err error) {
	resource := f.kind.Resource.GroupResource().String()
	leave := func(n Name, message string) {
		i := Item{Namespace: n.Namespace, Name: n.Name, Current: n.ExternalName, Action: Skip}
		i.Reason, i.Message = ReasonNotMapped, message
		leftOut = append(leftOut, i)
	}
	err = f.scan(ctx, func(m managed.Resource) error {
		switch name := m.ExternalName(); {
		case !m.IsManaged():
		case name == nil || *name == "":
			leftOut = append(leftOut, PlanFor(Scan{Kind: f.kind, Facts: []Fact{factOf(f.kind, m.Unstructured, Proposal{}, f.options.Identity, nil)}})...)
		default:
			n := Name{Resource: resource, Namespace: m.GetNamespace(), Name: m.GetName(), ExternalName: *name}
			if to != nil {
				replacement, err := to(ctx, m.Unstructured)
				if err != nil {
					leave(n, quote.Line(err.Error()))
					return context.Cause(ctx)
				}
				n.Replacement = &replacement
			}
			names = append(names, n)
		}
		return nil
	})
	if to != nil {
		names = distinct(names, leave)
	}
	return names, leftOut, err
}

// distinct leaves names out that have one replacement.
func distinct(names []Name, leave func(Name, string)) []Name {
	count := map[Replacement]int{}
	for _, n := range names {
		count[*n.Replacement]++
	}
	return slices.DeleteFunc(names, func(n Name) bool {
		if count[*n.Replacement] == 1 {
			return false
		}
		leave(n, fmt.Sprintf("%d managed resources have the replacement %s %s", count[*n.Replacement], n.Replacement.Resource, key(n.Replacement.Namespace, n.Replacement.Name)))
		return true
	})
}

// RestoreOptions configure [Fleet.Restore].
type RestoreOptions struct {
	// Overwrite also replaces names that differ from the saved ones.
	Overwrite bool
	// Unpause ends the pause of each restored managed resource, in the same patch.
	Unpause bool
	// DryRun decides and writes nothing.
	DryRun bool
}

// Restore writes saved names to paused managed resources of the kind. It does not change other managed resources, and
// ignores names of other kinds.
func (f *Fleet) Restore(ctx context.Context, names []Name, how RestoreOptions) (Report, error) {
	var r Report
	for _, n := range names {
		if n.Resource != f.kind.Resource.GroupResource().String() || f.options.Scope.Namespace != "" && n.Namespace != f.options.Scope.Namespace {
			continue
		}
		r.Results = append(r.Results, Result{Item: Item{Namespace: n.Namespace, Name: n.Name, Proposed: n.ExternalName}})
	}
	return r, f.writeEach(ctx, r.Results, func(result *Result, s situation) (decision, *managed.Changes) {
		result.Current = s.nameText()
		d, c := decideRestore(s, how)
		if how.DryRun {
			c = nil
		}
		return d, c
	})
}

// decideRestore decides what to write for a saved name. It is pure.
func decideRestore(s situation, how RestoreOptions) (decision, *managed.Changes) {
	switch name := s.nameText(); {
	case !s.exists:
		return endWith(stepEnd, PhaseGone, nil, "the cluster has no such managed resource"), nil
	case errors.As(s.journalErr, new(*format.NewerError)):
		reason, message := unreadable(s.journalErr)
		return endWith(stepEnd, PhaseSkipped, reason, "%s", message), nil
	case name == s.proposed && (!how.Unpause || !s.paused):
		return endWith(stepEnd, PhaseUnchanged, nil, ""), nil
	case !s.paused:
		return endWith(stepEnd, PhaseSkipped, ReasonNotPausedYet, "the managed resource is not paused, so that the provider may act on it under another name"), nil
	case name != "" && name != s.proposed && !how.Overwrite:
		return endWith(stepEnd, PhaseSkipped, ReasonNameDiffers, "the managed resource has the external name %q, and the saved one is %q", quote.Clip(name, nameBytes), quote.Clip(s.proposed, nameBytes)), nil
	}
	c := (&managed.Changes{}).Set(managed.AnnotationName, s.proposed)
	if how.Unpause {
		c.Remove(managed.AnnotationPaused)
	}
	return endWith(stepRename, PhaseRestored, nil, ""), c
}
