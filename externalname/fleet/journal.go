package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/godwit-dev/godwit/internal/format"
)

// AnnotationJournal is the journal of a renaming, on the managed resource itself. It is kept after the renaming, for a
// rollback.
const AnnotationJournal = "godwit.dev/renaming"

// phase is the phase of a renaming.
type phase string

const (
	// phasePausing means that the pause is written, and the name is still the old one.
	phasePausing phase = "Pausing"
	// phaseRenaming means that the new name is written, and not proven yet.
	phaseRenaming phase = "Renaming"
	// phaseRenamed means that the external resource is proven to be the same under the new name.
	phaseRenamed phase = "Renamed"
)

// journal is the value of [AnnotationJournal].
type journal struct {
	Phase phase `json:"phase"`
	// From is the old name byte for byte; null if the annotation did not exist.
	From *string `json:"from"`
	To   string  `json:"to"`
	// Identity and Creations are the values when the new name was written.
	Identity  map[string]string `json:"identity,omitempty"`
	Creations string            `json:"creations,omitempty"`
	// Earlier is the journal of the previous renaming, which is restored if this one is undone.
	Earlier string `json:"earlier,omitempty"`
}

// storedJournal is the content of the annotation.
type storedJournal struct {
	Format int `json:"format"`
	journal
}

var errJournal = errors.New("it has no phase and names that Godwit writes")

// readJournal reads the journal. It returns nil if the annotation does not exist.
func readJournal(m managed) (*journal, error) {
	if err := checkFormat(m); err != nil {
		return nil, err
	}
	text, ok := m.GetAnnotations()[AnnotationJournal]
	if !ok {
		return nil, nil //nolint:nilnil // as documented
	}
	j := &journal{}
	if err := json.Unmarshal([]byte(text), j); err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	switch j.Phase {
	case phasePausing, phaseRenaming, phaseRenamed:
		if j.To != "" {
			return j, nil
		}
	}
	return nil, errJournal
}

// checkFormat refuses a managed resource whose annotations a newer release of Godwit wrote.
func checkFormat(m managed) error {
	what := strings.TrimPrefix(m.GetNamespace()+"/"+m.GetName(), "/")
	if err := format.CheckObject(what, m); err != nil {
		return err
	}
	return format.Check(fmt.Sprintf("annotation %s of %s", AnnotationJournal, what), []byte(m.GetAnnotations()[AnnotationJournal]))
}

// unfinished returns the new name of a renaming that has not ended, or empty.
func (j *journal) unfinished() string {
	if j == nil || j.Phase == phaseRenamed {
		return ""
	}
	return j.To
}

// changes are annotations to write; nil removes one.
type changes map[string]*string

func (c changes) set(key, value string) changes {
	c[key] = &value
	return c
}

func (c changes) remove(key string) changes {
	c[key] = nil
	return c
}

// write adds a journal to the changes.
func (c changes) write(j journal) (changes, error) {
	text, err := json.Marshal(storedJournal{Format: format.Current, journal: j})
	if err != nil {
		return nil, fmt.Errorf("write the journal: %w", err)
	}
	return c.set(AnnotationJournal, string(text)), nil
}

// restore adds the journal of the previous renaming to the changes, for a renaming that is undone.
func (c changes) restore(j journal) changes {
	if j.Earlier == "" {
		return c.remove(AnnotationJournal)
	}
	return c.set(AnnotationJournal, j.Earlier)
}

// name sets the external name, or removes the annotation if the name is nil.
func (c changes) name(name *string) changes {
	c[annotationName] = name
	return c
}

// patch is a merge patch at the resourceVersion that was read: the API server answers with a conflict
// if the object has changed since.
func (c changes) patch(m managed) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": m.GetResourceVersion(), "uid": m.GetUID(), "annotations": c,
	}})
}
