package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/quote"
)

// AnnotationJournal is the journal of a renaming, on the managed resource itself. It is kept after the renaming, for a
// rollback.
const AnnotationJournal = "godwit.dev/renaming"

// phase is the phase of a renaming.
type phase string

const (
	// phasePausing means that the pause is written, and the name is still the old one.
	phasePausing phase = "Pausing"
	// phaseObserving means that the new name is written, and that the management policies allow Observe alone.
	phaseObserving phase = "Observing"
	// phaseRenaming means that the new name is written, and not proven yet, and that the provider may write.
	phaseRenaming phase = "Renaming"
	// phaseCreated means that the provider has begun to create an external resource under the new name, and that the managed
	// resource is paused until the outcome is recorded.
	phaseCreated phase = "Created"
	// phaseDoubled means that the old name is restored, and that a second external resource exists.
	phaseDoubled phase = "Doubled"
	// phaseRenamed means that the external resource is proven to be the same under the new name.
	phaseRenamed phase = "Renamed"
)

// journal is the value of [AnnotationJournal].
type journal struct {
	Phase phase `json:"phase"`
	// From is the old name byte for byte; null if the annotation did not exist.
	From *string `json:"from"`
	To   string  `json:"to"`
	// Identity and Creations are the values when the new name was written, and Creations those when it was proven.
	Identity  map[string]string `json:"identity,omitempty"`
	Creations string            `json:"creations,omitempty"`
	// Policies are the management policies before phaseObserving.
	Policies []string `json:"policies,omitzero"`
	// Second is the external name of the second resource, in phaseDoubled.
	Second string `json:"second,omitempty"`
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
func readJournal(m managed.Resource) (*journal, error) {
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
	case phasePausing, phaseObserving, phaseRenaming, phaseCreated, phaseDoubled, phaseRenamed:
		if j.To != "" {
			return j, nil
		}
	}
	return nil, errJournal
}

// checkFormat refuses a managed resource whose annotations a newer release of Godwit wrote.
func checkFormat(m managed.Resource) error {
	what := strings.TrimPrefix(m.GetNamespace()+"/"+m.GetName(), "/")
	if err := format.CheckObject(what, m); err != nil {
		return err
	}
	return format.Check(fmt.Sprintf("annotation %s of %s", AnnotationJournal, what), []byte(m.GetAnnotations()[AnnotationJournal]))
}

// unfinished returns the new name of a renaming that has not ended, or empty.
func (j *journal) unfinished() string {
	if j == nil || j.ended() {
		return ""
	}
	return j.To
}

// from is the name before the renaming; empty if there was none.
func (j *journal) from() string {
	if j.From == nil {
		return ""
	}
	return *j.From
}

// nameBytes bounds a name in a message.
const nameBytes = 64

// doubled names both external resources.
func (j *journal) doubled() string {
	return fmt.Sprintf("Its external resources are %q, which it had before, and %q", quote.Clip(j.from(), nameBytes), quote.Clip(j.Second, nameBytes))
}

// ended reports whether a renaming has no further step.
func (j *journal) ended() bool { return j.Phase == phaseRenamed || j.Phase == phaseDoubled }

// writeJournal adds a journal to changes.
func writeJournal(c *managed.Changes, j journal) (*managed.Changes, error) {
	text, err := json.Marshal(storedJournal{Format: format.Current, journal: j})
	if err != nil {
		return nil, fmt.Errorf("write the journal: %w", err)
	}
	return c.Set(AnnotationJournal, string(text)), nil
}

// restore adds the journal of the previous renaming to changes, for a renaming that is undone.
func (j *journal) restore(c *managed.Changes) *managed.Changes {
	if j.Earlier == "" {
		return c.Remove(AnnotationJournal)
	}
	return c.Set(AnnotationJournal, j.Earlier)
}

// removePause ends the pause of a phase that has one. In the others it is a user's.
func (j *journal) removePause(c *managed.Changes) {
	if j.Phase == phasePausing || j.Phase == phaseCreated {
		c.Remove(managed.AnnotationPaused)
	}
}

// endTrial gives the provider the management policies back that it had before the trial.
// Policies that another client has written stay.
func (j *journal) endTrial(c *managed.Changes, policies []string) *managed.Changes {
	if j.Policies != nil && slices.Equal(policies, managed.ObserveOnly) {
		c.Policies = j.Policies
	}
	return c
}
