package storageversion

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// CheckpointAnnotation on a CustomResourceDefinition holds the checkpoint
	// of a run that is under way or was interrupted. The trim removes it.
	CheckpointAnnotation = "godwit.dev/migration-checkpoint"

	// maxRestarts within restartWindow tell that a CRD is being fought
	// over.
	maxRestarts   = 3
	restartWindow = time.Hour
)

// Checkpoint is the evidence that an interrupted run leaves behind. Losing it
// costs requests, never safety.
type Checkpoint struct {
	CRDUID         types.UID `json:"crdUID"`
	Generation     int64     `json:"generation"`
	StorageVersion string    `json:"storageVersion"`
	// ResourceVersion is C, the first page's of the first pass after settling.
	// Whatever was written later was written at the storage version.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Cursor is the key up to which, in storage order, every object is done.
	Cursor string `json:"cursor,omitempty"`
	// Settled is the settle time that C was taken after, and AcceptedStaleLeases
	// says whether servers with a stale lease were passed over: a run that asks for more
	// does not rely on it.
	Settled             metav1.Duration `json:"settled"`
	AcceptedStaleLeases bool            `json:"acceptedStaleLeases,omitempty"`
	// Restarts are the times at which runs began again because the CRD
	// changed under them.
	Restarts []metav1.Time `json:"restarts,omitempty"`
}

// Journal keeps checkpoints where they survive the process.
type Journal interface {
	// Load returns the checkpoint of a CRD, zero if there is none or
	// it can't be understood.
	Load(context.Context, *apiextensionsv1.CustomResourceDefinition) (Checkpoint, error)
	// Save replaces it; a zero checkpoint removes it.
	Save(ctx context.Context, crd string, c Checkpoint) error
}

func (c Checkpoint) isZero() bool { return c.CRDUID == "" }

// resume returns the checkpoint as it holds for the CRD as it is now.
//
// One change of the CRD is survived, when the version stored before, as
// the checkpoint remembers it, and after it is the same: no other spec can have
// been in force in between. Two changes may hide a flip there and back.
func (c Checkpoint) resume(crd *apiextensionsv1.CustomResourceDefinition) (Checkpoint, bool) {
	sameSpec := crd.Generation == c.Generation || crd.Generation == c.Generation+1
	if c.ResourceVersion == "" || c.CRDUID != crd.UID || c.StorageVersion != kube.StorageVersion(crd) || !sameSpec {
		return Checkpoint{}, false
	}
	c.Generation = crd.Generation
	return c, true
}

// holds reports whether a run under the policy may go on from the checkpoint.
func (c Checkpoint) holds(crd *apiextensionsv1.CustomResourceDefinition, p Policy) bool {
	_, ok := c.resume(crd)
	return ok && c.Settled.Duration >= p.terms().Time() && (p.AcceptStaleLeases || !c.AcceptedStaleLeases)
}

// done reports whether a run that resumes from the checkpoint would not write the
// object. An object whose resourceVersion can't be compared is not done.
func (c Checkpoint) done(crd *apiextensionsv1.CustomResourceDefinition, p Policy, o *metav1.PartialObjectMetadata) bool {
	if !c.holds(crd, p) {
		return false
	}
	if c.Cursor != "" && walk.Key(o) <= c.Cursor {
		return true
	}
	done, err := newer(o.ResourceVersion, c.ResourceVersion)
	return done && err == nil
}

// begin is the checkpoint of a run that starts from nothing: what is left of
// the one before are the times of restarts on the same CRD.
func (c Checkpoint) begin(crd *apiextensionsv1.CustomResourceDefinition, now time.Time) Checkpoint {
	next := Checkpoint{CRDUID: crd.UID, Generation: crd.Generation, StorageVersion: kube.StorageVersion(crd)}
	if c.CRDUID != crd.UID {
		return next
	}
	for _, t := range c.Restarts {
		if t.After(now.Add(-restartWindow)) {
			next.Restarts = append(next.Restarts, t)
		}
	}
	if c.Generation != crd.Generation {
		next.Restarts = append(next.Restarts, metav1.NewTime(now))
	}
	return next
}

func (c Checkpoint) restartsSince(t time.Time) int {
	n := 0
	for _, r := range c.Restarts {
		if r.After(t) {
			n++
		}
	}
	return n
}

// annotationJournal is the default: the checkpoint is an annotation on the
// CRD that it speaks of, so it needs no object and no grant of its own.
type annotationJournal struct {
	client *request.Client
}

func (annotationJournal) Load(_ context.Context, crd *apiextensionsv1.CustomResourceDefinition) (Checkpoint, error) {
	var c Checkpoint
	text, ok := crd.Annotations[CheckpointAnnotation]
	if !ok {
		return c, nil
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return Checkpoint{}, nil //nolint:nilerr // what can't be read can't be trusted: the run starts anew
	}
	return c, nil
}

func (j annotationJournal) Save(ctx context.Context, crd string, c Checkpoint) error {
	var value *string
	if !c.isZero() {
		text, err := json.Marshal(c)
		if err != nil {
			return err
		}
		s := string(text)
		value = &s
	}
	metadata := map[string]any{"annotations": map[string]any{CheckpointAnnotation: value}}
	if !c.isZero() {
		metadata["uid"] = c.CRDUID // a CRD that was created again gets a conflict, not a stranger's checkpoint
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	if err := j.client.PatchCRD(ctx, crd, types.MergePatchType, patch); err != nil {
		return fmt.Errorf("save the checkpoint in annotation %s: %w", CheckpointAnnotation, err)
	}
	return nil
}
