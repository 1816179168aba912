package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/godwit-dev/godwit/internal/format"
)

// AnnotationJournal is the journal of a renaming, on the managed resource itself. It stays after the
// renaming, so that the name can be rolled back.
const AnnotationJournal = "godwit.dev/renaming"

// phase is how far a renaming is.
type phase string

const (
	// phasePausing: the pause is written, and the name is still the old one.
	phasePausing phase = "Pausing"
	// phaseRenaming: the new name is written, and nothing is proven.
	phaseRenaming phase = "Renaming"
	// phaseRenamed: the external resource is the same under the new name.
	phaseRenamed phase = "Renamed"
)

// journal is the value of [AnnotationJournal].
type journal struct {
	Phase phase `json:"phase"`
	// From is the old name byte for byte; null if there was no annotation.
	From *string `json:"from"`
	To   string  `json:"to"`
	// Identity and Creations are from the time at which the new name was written.
	Identity  map[string]string `json:"identity,omitempty"`
	Creations string            `json:"creations,omitempty"`
	// Earlier is the journal of the renaming before this one, which an undone renaming leaves as it was.
	Earlier string `json:"earlier,omitempty"`
}

// storedJournal is a journal as the annotation has it.
type storedJournal struct {
	Format int `json:"format"`
	journal
}

var errJournal = errors.New("it has no phase and names that Godwit writes")

// readJournal returns nil without a journal.
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

// unfinished is the new name of a renaming that has not ended.
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

// write keeps a journal in the changes.
func (c changes) write(j journal) (changes, error) {
	text, err := json.Marshal(storedJournal{Format: format.Current, journal: j})
	if err != nil {
		return nil, fmt.Errorf("write the journal: %w", err)
	}
	return c.set(AnnotationJournal, string(text)), nil
}

// restore writes the journal of the renaming before one that is undone.
func (c changes) restore(j journal) changes {
	if j.Earlier == "" {
		return c.remove(AnnotationJournal)
	}
	return c.set(AnnotationJournal, j.Earlier)
}

// name sets the external name as it was, which may be without annotation.
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
