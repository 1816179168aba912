package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/quote"
)

// Reasons of a managed resource whose name a book does not restore.
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
)

// bookVersion and bookKind are of every book.
const (
	bookVersion = "externalname.godwit.dev/v1alpha1"
	bookKind    = "ExternalNameBook"
)

// Book has the external names of managed resources, of any kinds, for a cluster that has to be built
// again without a backup of etcd.
type Book struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	SavedAt    time.Time `json:"savedAt"`
	Names      []Name    `json:"names"`
}

// Name is the external name of one managed resource.
type Name struct {
	// Resource is the one that kubectl takes, such as persons.example.org.
	Resource     string `json:"resource"`
	Namespace    string `json:"namespace,omitempty"`
	Name         string `json:"name"`
	ExternalName string `json:"externalName"`
}

// NewBook returns a book with names.
func NewBook(savedAt time.Time, names []Name) Book {
	return Book{APIVersion: bookVersion, Kind: bookKind, SavedAt: savedAt.UTC().Truncate(time.Second), Names: names}
}

// ReadBook reads a book that was written as JSON.
func ReadBook(text []byte) (Book, error) {
	var b Book
	if err := json.Unmarshal(text, &b); err != nil {
		return Book{}, fmt.Errorf("read the saved names: %w", err)
	}
	group, _, _ := strings.Cut(bookVersion, "/")
	switch {
	case b.APIVersion == bookVersion && b.Kind == bookKind:
	case b.Kind == bookKind && strings.HasPrefix(b.APIVersion, group+"/"):
		return Book{}, fmt.Errorf("read the saved names: it is an %s of %s, and this release of Godwit reads %s: use the release that wrote it",
			bookKind, quote.Line(b.APIVersion), bookVersion)
	default:
		return Book{}, fmt.Errorf("read the saved names: it is a %s of %s, want an %s of %s",
			quote.Line(b.Kind), quote.Line(b.APIVersion), bookKind, bookVersion)
	}
	return b, nil
}

// Save returns the names of all managed resources in scope that have one.
func (f *Fleet) Save(ctx context.Context) ([]Name, error) {
	resource := f.kind.Resource.GroupResource().String()
	var names []Name
	err := f.scan(ctx, func(m managed) error {
		if name := m.externalName(); name != nil && *name != "" && m.isManaged() {
			names = append(names, Name{resource, m.GetNamespace(), m.GetName(), *name})
		}
		return nil
	})
	return names, err
}

// Restoring says how names of a book are written.
type Restoring struct {
	// Overwrite also replaces names that differ from the book.
	Overwrite bool
	// Unpause ends the pause of each managed resource that has its name, in the same patch.
	Unpause bool
	// DryRun only decides.
	DryRun bool
}

// Restore writes the names of a book onto managed resources of the kind that are paused. It leaves
// others alone. Names of other kinds are ignored.
func (f *Fleet) Restore(ctx context.Context, names []Name, how Restoring) (Report, error) {
	var r Report
	for _, n := range names {
		if n.Resource != f.kind.Resource.GroupResource().String() || f.options.Scope.Namespace != "" && n.Namespace != f.options.Scope.Namespace {
			continue
		}
		r.Results = append(r.Results, Result{Item: Item{Namespace: n.Namespace, Name: n.Name, Proposed: n.ExternalName}})
	}
	return r, f.writeEach(ctx, r.Results, func(result *Result, s situation) (decision, changes) {
		result.Current = s.nameText()
		d, c := restored(s, how)
		if how.DryRun {
			c = nil
		}
		return d, c
	})
}

// restored decides what is written from a book. It is pure.
func restored(s situation, how Restoring) (decision, changes) {
	switch name := s.nameText(); {
	case !s.exists:
		return ends(moveEnd, PhaseGone, nil, "the cluster has no such managed resource"), nil
	case errors.As(s.journalErr, new(*format.NewerError)):
		reason, message := unreadable(s.journalErr)
		return ends(moveEnd, PhaseSkipped, reason, "%s", message), nil
	case name == s.proposed && (!how.Unpause || !s.paused):
		return ends(moveEnd, PhaseUnchanged, nil, ""), nil
	case !s.paused:
		return ends(moveEnd, PhaseSkipped, ReasonNotPausedYet, "the managed resource is not paused, so that the provider may act on it under another name"), nil
	case name != "" && name != s.proposed && !how.Overwrite:
		return ends(moveEnd, PhaseSkipped, ReasonNameDiffers, "the managed resource has the external name %q, and the book has %q", quote.Clip(name, nameBytes), quote.Clip(s.proposed, nameBytes)), nil
	}
	c := changes{}.set(annotationName, s.proposed)
	if how.Unpause {
		c.remove(annotationPaused)
	}
	return ends(moveRename, PhaseRestored, nil, ""), c
}
