package evidence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// CheckpointAnnotation on a CustomResourceDefinition holds the checkpoint
	// of a run that is under way or was interrupted. The trim removes it.
	CheckpointAnnotation = "godwit.dev/migration-checkpoint"

	// MaxRestarts is how many restarts within restartWindow show that clients keep changing a CRD.
	MaxRestarts   = 3
	restartWindow = time.Hour
)

// Checkpoint is the evidence that an interrupted run leaves behind. Losing it
// costs requests, never safety.
type Checkpoint struct {
	CRDUID         types.UID `json:"crdUID"`
	Generation     int64     `json:"generation"`
	StorageVersion string    `json:"storageVersion"`
	// ResourceVersion is that of the first page of the first pass after the
	// settle time. Every later write was at the storage version.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Cursor is the key up to which, in storage order, every object is done.
	Cursor string `json:"cursor,omitempty"`
	// Settled is the settle time that the run waited for before it read
	// ResourceVersion. A run with a longer settle time does not rely on the
	// checkpoint.
	Settled metav1.Duration `json:"settled"`
	// AcceptedStaleLeases means that the run did not wait for servers with a
	// stale lease. A run that waits for them does not rely on the checkpoint.
	AcceptedStaleLeases bool `json:"acceptedStaleLeases,omitempty"`
	// Proof says how the run has proven that the rewrite keeps each value. Without a proof for its generation, a run that
	// resumes waits for the API servers and makes the proof again, since a schema may have changed.
	Proof *Proof `json:"proof,omitempty"`
	// Restarts are the times at which runs began again because the CRD
	// changed under them.
	Restarts []metav1.Time `json:"restarts,omitempty"`
}

// Journal keeps checkpoints where they survive the process.
type Journal interface {
	// Load returns the checkpoint of a CRD. It is zero if there is none, or
	// none that can be parsed. For a checkpoint of a newer release, Load
	// returns a format.NewerError.
	Load(context.Context, *apiextensionsv1.CustomResourceDefinition) (Checkpoint, error)
	// Save replaces it; a zero checkpoint removes that of the CRD with its CRDUID.
	Save(ctx context.Context, crd string, c Checkpoint) error
}

// IsZero reports whether there is no checkpoint. CRDUID does not count.
func (c Checkpoint) IsZero() bool { return c.StorageVersion == "" }

// Resume returns the checkpoint for the present generation of the CRD, and
// whether it still holds.
//
// It holds after one change of the spec if the storage version is the same
// before and after: no other spec was in force in between. After two changes,
// the storage version may have changed and changed back.
func (c Checkpoint) Resume(crd *apiextensionsv1.CustomResourceDefinition) (Checkpoint, bool) {
	sameSpec := crd.Generation == c.Generation || crd.Generation == c.Generation+1
	if c.ResourceVersion == "" || c.CRDUID != crd.UID || c.StorageVersion != kube.StorageVersion(crd) || !sameSpec {
		return Checkpoint{}, false
	}
	c.Generation = crd.Generation
	return c, true
}

// Holds reports whether a run under these terms may resume at the checkpoint.
func (c Checkpoint) Holds(crd *apiextensionsv1.CustomResourceDefinition, terms settle.Terms) bool {
	_, ok := c.Resume(crd)
	return ok && c.Settled.Duration >= terms.Time() && (terms.AcceptStaleLeases || !c.AcceptedStaleLeases)
}

// Done reports whether a run that resumes from the checkpoint would not write the
// object. An object whose resourceVersion can't be compared is not done.
func (c Checkpoint) Done(crd *apiextensionsv1.CustomResourceDefinition, terms settle.Terms, o *metav1.PartialObjectMetadata) bool {
	if !c.Holds(crd, terms) {
		return false
	}
	if c.Cursor != "" && walk.Key(o) <= c.Cursor {
		return true
	}
	done, err := Newer(o.ResourceVersion, c.ResourceVersion)
	return done && err == nil
}

// Begin is the checkpoint of a run that starts from the beginning. It keeps only
// the times of restarts on the same CRD.
func (c Checkpoint) Begin(crd *apiextensionsv1.CustomResourceDefinition, now time.Time) Checkpoint {
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

// RecentRestarts counts the runs that began again, because the CRD changed, within the last hour.
func (c Checkpoint) RecentRestarts(now time.Time) int {
	n := 0
	for _, r := range c.Restarts {
		if r.After(now.Add(-restartWindow)) {
			n++
		}
	}
	return n
}

// stored is a checkpoint as an annotation has it.
type stored struct {
	Format int `json:"format"`
	Checkpoint
}

// AnnotationJournal is the default journal. It keeps the checkpoint in an annotation
// on the CRD, so that it needs no object of its own.
type AnnotationJournal struct {
	Client *request.Client
}

// Load implements [Journal].
func (AnnotationJournal) Load(_ context.Context, crd *apiextensionsv1.CustomResourceDefinition) (Checkpoint, error) {
	var c Checkpoint
	text, ok := crd.Annotations[CheckpointAnnotation]
	if !ok {
		return c, nil
	}
	if err := format.Check("annotation "+CheckpointAnnotation+" of customresourcedefinition "+crd.Name, []byte(text)); err != nil {
		return c, err
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return Checkpoint{}, nil //nolint:nilerr // what can't be read can't be trusted: the run starts anew
	}
	return c, nil
}

// Save implements [Journal].
func (j AnnotationJournal) Save(ctx context.Context, crd string, c Checkpoint) error {
	var value *string
	if !c.IsZero() {
		text, err := json.Marshal(stored{Format: format.Current, Checkpoint: c})
		if err != nil {
			return err
		}
		s := string(text)
		value = &s
	}
	metadata := map[string]any{"annotations": map[string]any{CheckpointAnnotation: value}}
	if c.CRDUID != "" {
		metadata["uid"] = c.CRDUID // the API server refuses the write to a CRD that was created again, which may have the checkpoint of another run
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	err = j.Client.PatchCRD(ctx, crd, types.MergePatchType, patch)
	if annotationsFull(err) {
		return nil // the run goes on; if it is interrupted, the next one begins again
	}
	if err != nil {
		return fmt.Errorf("save the checkpoint in annotation %s: %w", CheckpointAnnotation, err)
	}
	return nil
}

// Try sends a write of the checkpoint as a server-side dry run.
func (j AnnotationJournal) Try(ctx context.Context, crd string) error {
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: "{}"}}}`, CheckpointAnnotation)
	if err := j.Client.TryPatchCRD(ctx, crd, types.MergePatchType, patch); !annotationsFull(err) {
		return err
	}
	return nil // the run goes on without a checkpoint
}

// annotationsFull reports whether the API server refuses a write because all annotations together would be too large.
func annotationsFull(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Field == "metadata.annotations" && c.Type == metav1.CauseType(field.ErrorTypeTooLong)
	})
}

// checkpointSize is more than a checkpoint takes, with its key.
const checkpointSize = 1 << 10

// Crowded returns the largest annotation of a CRD and its size, if all annotations leave no room for a checkpoint.
func Crowded(crd *apiextensionsv1.CustomResourceDefinition) (largest string, bytes int, crowded bool) {
	total := 0
	for key, value := range crd.Annotations {
		if key == CheckpointAnnotation {
			continue
		}
		size := len(key) + len(value)
		if total += size; size > bytes {
			largest, bytes = key, size
		}
	}
	return largest, bytes, total+checkpointSize > validation.TotalAnnotationSizeLimitB
}

// Newer compares two resourceVersions of one resource.
func Newer(a, b string) (bool, error) {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return false, fmt.Errorf("compare resourceVersions %q and %q: %w", a, b, err)
	}
	return order > 0, nil
}
