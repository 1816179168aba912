package handover

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/externalname/internal/managed"
	"github.com/godwit-dev/godwit/internal/format"
)

// AnnotationHandover is what a handover has changed, on each of the two managed resources.
const AnnotationHandover = "godwit.dev/handover"

// phase is the phase of one side of a handover.
type phase string

const (
	// phaseObserving means that the replacement has the name, and only observes.
	phaseObserving phase = "Observing"
	// phaseAdopted means that the replacement has its management policies back.
	phaseAdopted phase = "Adopted"
	// phaseReturned means that the replacement is paused again, and only observes, so that neither the end of its pause nor its deletion
	// changes anything.
	phaseReturned phase = "Returned"
	// phaseReturning means that a rollback has paused the replacement.
	phaseReturning phase = "Returning"
	// phasePausing means that the original is paused.
	phasePausing phase = "Pausing"
	// phaseReleased means that the original only observes.
	phaseReleased phase = "Released"
)

// Object is a managed resource.
type Object struct {
	// Resource is the name of the CRD, such as buckets.s3.example.org.
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// GetNamespace makes an Object an object of package walk.
func (o Object) GetNamespace() string { return o.Namespace }

// GetName makes an Object an object of package walk.
func (o Object) GetName() string { return o.Name }

func (o Object) String() string {
	return o.Resource + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

// journal is the value of [AnnotationHandover].
type journal struct {
	Phase phase `json:"phase"`
	// Other is the other managed resource.
	Other Object `json:"other"`
	// Name is the external name of the replacement before the handover; null if it had none.
	Name *string `json:"name"`
	// Policies are the management policies before the handover, and Paused whether it was paused.
	Policies []string `json:"policies"`
	Paused   bool     `json:"paused,omitempty"`
	// Identity is that of the original when the replacement began to observe.
	Identity map[string]string `json:"identity,omitempty"`
}

// replacement reports whether the journal is that of a replacement.
func (j *journal) replacement() bool {
	return slices.Contains([]phase{phaseObserving, phaseAdopted, phaseReturning, phaseReturned}, j.Phase)
}

// storedJournal is the content of the annotation.
type storedJournal struct {
	Format int `json:"format"`
	journal
}

var errJournal = errors.New("it has no phase, no managed resource or no management policies that Godwit writes")

// readJournal returns nil if the annotation does not exist.
func readJournal(m managed.Resource) (*journal, error) {
	what := strings.TrimPrefix(m.GetNamespace()+"/"+m.GetName(), "/")
	text, has := m.GetAnnotations()[AnnotationHandover]
	err := format.CheckObject(what, m)
	if err == nil {
		err = format.Check(fmt.Sprintf("annotation %s of %s", AnnotationHandover, what), []byte(text))
	}
	if err != nil || !has {
		return nil, err
	}
	j := &journal{}
	if err := json.Unmarshal([]byte(text), j); err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	if !j.replacement() && j.Phase != phasePausing && j.Phase != phaseReleased || j.Other.Resource == "" || j.Other.Name == "" || len(j.Policies) == 0 {
		return nil, errJournal
	}
	return j, nil
}

// write adds a journal to changes.
func (j journal) write(c *managed.Changes) (*managed.Changes, error) {
	text, err := json.Marshal(storedJournal{Format: format.Current, journal: j})
	if err != nil {
		return nil, fmt.Errorf("write the journal: %w", err)
	}
	return c.Set(AnnotationHandover, string(text)), nil
}
