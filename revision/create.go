package revision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
)

func (t *upgrade) setReplacement(r *appsv1.ControllerRevision) {
	t.replacement = r
	t.result.Replacement, t.result.ReplacementUID, t.result.ReplacementHash = r.Name, r.UID, Hash(r)
}

// ensure makes the successor, or finds the one that is there.
func (r *pass) ensure(ctx context.Context, t *upgrade, j decision) error {
	if j.Reason == ReasonRetained {
		successor, err := r.client.revision(ctx, t.GetNamespace(), j.replacement.Name)
		switch {
		case err != nil:
			return err
		case successor == nil && len(r.Of(j.replacement.Name)) > 0:
			return r.recreateReplacement(ctx, t, j.replacement.Name)
		case successor == nil:
			t.setStatus(Skipped, ReasonReplacementGone, j.replacement.Name+" took its place, and is gone: this revision is kept")
		default:
			t.setReplacement(successor)
			t.setStatus(Created, "", "")
			return r.clearReplacementUnreferenced(ctx, t)
		}
		return nil
	}
	t.result.Phase = waiting(j)
	if err := r.clearUnreferenced(ctx, t); err != nil {
		return err
	}
	want := newReplacement(j.replacement, t.source, j.newController)
	names := []string{r.restorable(t, want.Name), r.restorable(t, suffixed(want))}
	if heir := r.replacementOf(t.source); heir != "" && heir == names[1] {
		names = names[1:] // made before, when something else had the name
	}
	for _, name := range names {
		want.Name = name
		successor, err := r.client.create(ctx, want)
		if apierrors.IsAlreadyExists(err) {
			successor, err = r.adoptExisting(ctx, want)
		}
		if err != nil {
			return fmt.Errorf("create controllerrevision %s/%s: %w", want.Namespace, name, err)
		}
		if successor != nil {
			t.setReplacement(successor)
			t.setStatus(Created, "", "")
			return r.recordLineage(ctx, t)
		}
	}
	t.setStatus(Failed, ReasonNameTaken, fmt.Sprintf("controllerrevision %s/%s exists and holds something else", want.Namespace, want.Name))
	return nil
}

// recordLineage notes on a successor that another source of the same has made that this one
// was led to it, too: the name may come back when the source is gone. And on the
// source, where to.
func (r *pass) recordLineage(ctx context.Context, t *upgrade) error {
	if err := r.clearReplacementUnreferenced(ctx, t); err != nil {
		return err
	}
	if _, known := sourcesOf(t.replacement)[t.source.UID]; !known {
		successor, err := r.client.metadata(ctx, t.replacement, nil, map[string]*string{AlsoFromPrefix + string(t.source.UID): &t.source.Name})
		if err != nil {
			return fmt.Errorf("write controllerrevision %s/%s: %w", t.GetNamespace(), t.replacement.Name, err)
		}
		t.replacement = successor
	}
	if _, first := sourceOf(t.replacement); first == t.source.UID || notedReplacement(t.source) == t.replacement.Name {
		return nil
	}
	source, err := r.client.metadata(ctx, t.source, nil, map[string]*string{ToAnnotation: &t.replacement.Name})
	if err != nil {
		return fmt.Errorf("write controllerrevision %s/%s: %w", t.GetNamespace(), t.GetName(), err)
	}
	t.source = source
	return nil
}

// recreateReplacement brings back a successor that somebody deleted and others refer to: its
// source is kept for that.
func (r *pass) recreateReplacement(ctx context.Context, t *upgrade, name string) error {
	j := decide(facts{family: r.family, policy: t.policy, crds: r.crds, revision: t.source, references: r.Of(name)})
	if j.replacement == nil {
		t.setStatus(Failed, j.Reason, name+" took its place, and is gone: "+j.Message)
		return nil
	}
	t.result.Phase = Converted
	want := newReplacement(j.replacement, t.source, j.newController)
	want.Name = name
	successor, err := r.client.create(ctx, want)
	if err != nil {
		return fmt.Errorf("create controllerrevision %s/%s: %w", want.Namespace, name, err)
	}
	t.setReplacement(successor)
	t.setStatus(Created, "", "")
	return nil
}

// clearUnreferenced drops, before anything else is done, since when a revision was not
// referred to: it is again.
func (r *pass) clearUnreferenced(ctx context.Context, t *upgrade) error {
	if unreferencedSince(t.old()).IsZero() {
		return nil
	}
	annotations := map[string]*string{UnreferencedAnnotation: nil}
	if !t.request.Rollback {
		annotations[ToAnnotation] = nil
	}
	old, err := r.client.metadata(ctx, t.old(), nil, annotations)
	if err != nil {
		return fmt.Errorf("write controllerrevision %s/%s: %w", t.GetNamespace(), t.old().Name, err)
	}
	t.setOld(old)
	return nil
}

// clearReplacementUnreferenced drops, on a new revision that a rollback left unreferenced and that is named
// again, since when it was not.
func (r *pass) clearReplacementUnreferenced(ctx context.Context, t *upgrade) error {
	if unreferencedSince(t.replacement).IsZero() {
		return nil
	}
	successor, err := r.client.metadata(ctx, t.replacement, nil, map[string]*string{UnreferencedAnnotation: nil})
	if err != nil {
		return fmt.Errorf("write controllerrevision %s/%s: %w", t.GetNamespace(), t.replacement.Name, err)
	}
	t.replacement = successor
	return nil
}

var errGoneAgain = errors.New("it existed a moment ago, and does not any more")

// adoptExisting takes what is there for what was to be made, if it is the same: made
// before an end that nobody noticed, or by the family's own software meanwhile.
func (r *pass) adoptExisting(ctx context.Context, want *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	there, err := r.client.revision(ctx, want.Namespace, want.Name)
	switch {
	case err != nil:
		return nil, err
	case there == nil:
		return nil, errGoneAgain // a suffix would make two successors of one source
	case !same(there, want):
		return nil, nil
	}
	// A source of the same name and another UID is gone: a restore brought it back.
	from, uid := sourceOf(there)
	if source, current := sourceOf(want); from != "" && (from != source || uid == current) {
		return there, nil
	}
	return r.client.metadata(ctx, there, nil, pointers(want.Annotations))
}

func (r *pass) relabel(ctx context.Context, t *upgrade, j decision) error {
	_, err := r.client.metadata(ctx, t.source, pointers(j.replacement.Labels), nil)
	if conflict(err) {
		t.setStatus(Pending, ReasonChanged, "the revision changed meanwhile")
		return nil
	}
	if err == nil {
		t.setStatus(Succeeded, "", "")
	}
	return err
}

func pointers(m map[string]string) map[string]*string {
	all := make(map[string]*string, len(m))
	for k, v := range m {
		all[k] = &v
	}
	return all
}

// same reports whether a revision is the one that was to be made: the same object of the
// same controller, and labelled so or known to come from the source.
func same(there, want *appsv1.ControllerRevision) bool {
	a, b := metav1.GetControllerOfNoCopy(there), metav1.GetControllerOfNoCopy(want)
	if a == nil || b == nil || a.UID != b.UID || there.DeletionTimestamp != nil {
		return false
	}
	_, source := sourceOf(want)
	if _, ours := sourcesOf(there)[source]; !ours && !labelled(there, want.Labels) {
		return false
	}
	var left, right any
	if utiljson.Unmarshal(there.Data.Raw, &left) != nil || utiljson.Unmarshal(want.Data.Raw, &right) != nil {
		return false
	}
	return reflect.DeepEqual(left, right)
}

// suffixed is the name to take where the name of a successor is taken. It follows
// from what the successor holds, so that whoever comes again finds it.
func suffixed(want *appsv1.ControllerRevision) string {
	digest := sha256.New()
	digest.Write(want.Data.Raw)
	digest.Write([]byte(want.Annotations[FromUIDAnnotation]))
	return WithSuffix(want.Name, hex.EncodeToString(digest.Sum(nil))[:8], validation.DNS1123SubdomainMaxLength)
}

// WithSuffix is a name or a label that ends in a dash and a tail, and has most characters
// at the most. What is cut for it does not end in a separator, which no API server
// takes in front of another one.
func WithSuffix(text, tail string, most int) string {
	head := text[:min(len(text), most-len(tail)-1)]
	return strings.TrimRight(head, "-._") + "-" + tail
}
