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

func (t *task) succeededBy(r *appsv1.ControllerRevision) {
	t.successor = r
	t.result.Successor, t.result.SuccessorUID, t.result.SuccessorHash = r.Name, r.UID, Hash(r)
}

// ensure makes the successor, or finds the one that is there.
func (r *round) ensure(ctx context.Context, t *task, j judgement) error {
	if j.Reason == ReasonRetained {
		successor, err := r.client.revision(ctx, t.GetNamespace(), j.successor.Name)
		switch {
		case err != nil:
			return err
		case successor == nil && len(r.Of(j.successor.Name)) > 0:
			return r.makeAgain(ctx, t, j.successor.Name)
		case successor == nil:
			t.ended(Skipped, ReasonSuccessorGone, j.successor.Name+" took its place, and is gone: this revision is kept")
		default:
			t.succeededBy(successor)
			t.ended(Created, "", "")
			return r.usedAgain(ctx, t)
		}
		return nil
	}
	t.result.Phase = waiting(j)
	if err := r.referredAgain(ctx, t); err != nil {
		return err
	}
	want := descend(j.successor, t.source, j.adopter)
	names := []string{r.restorable(t, want.Name), r.restorable(t, suffixed(want))}
	if heir := r.successorOf(t.source); heir != "" && heir == names[1] {
		names = names[1:] // made before, when something else had the name
	}
	for _, name := range names {
		want.Name = name
		successor, err := r.client.create(ctx, want)
		if apierrors.IsAlreadyExists(err) {
			successor, err = r.adopt(ctx, want)
		}
		if err != nil {
			return fmt.Errorf("create controllerrevision %s/%s: %w", want.Namespace, name, err)
		}
		if successor != nil {
			t.succeededBy(successor)
			t.ended(Created, "", "")
			return r.remember(ctx, t)
		}
	}
	t.ended(Failed, ReasonNameTaken, fmt.Sprintf("controllerrevision %s/%s exists and holds something else", want.Namespace, want.Name))
	return nil
}

// remember notes on a successor that another source of the same has made that this one
// was led to it, too: the name may come back when the source is gone. And on the
// source, where to.
func (r *round) remember(ctx context.Context, t *task) error {
	if err := r.usedAgain(ctx, t); err != nil {
		return err
	}
	if _, known := ancestors(t.successor)[t.source.UID]; !known {
		successor, err := r.client.metadata(ctx, t.successor, nil, map[string]*string{AlsoFromPrefix + string(t.source.UID): &t.source.Name})
		if err != nil {
			return fmt.Errorf("write controllerrevision %s/%s: %w", t.GetNamespace(), t.successor.Name, err)
		}
		t.successor = successor
	}
	if _, first := ancestry(t.successor); first == t.source.UID || successorOf(t.source) == t.successor.Name {
		return nil
	}
	source, err := r.client.metadata(ctx, t.source, nil, map[string]*string{ToAnnotation: &t.successor.Name})
	if err != nil {
		return fmt.Errorf("write controllerrevision %s/%s: %w", t.GetNamespace(), t.GetName(), err)
	}
	t.source = source
	return nil
}

// makeAgain brings back a successor that somebody deleted and others refer to: its
// source is kept for that.
func (r *round) makeAgain(ctx context.Context, t *task, name string) error {
	j := judge(facts{family: r.family, policy: t.policy, definitions: r.definitions, revision: t.source, references: r.Of(name)})
	if j.successor == nil {
		t.ended(Failed, j.Reason, name+" took its place, and is gone: "+j.Message)
		return nil
	}
	t.result.Phase = Converted
	want := descend(j.successor, t.source, j.adopter)
	want.Name = name
	successor, err := r.client.create(ctx, want)
	if err != nil {
		return fmt.Errorf("create controllerrevision %s/%s: %w", want.Namespace, name, err)
	}
	t.succeededBy(successor)
	t.ended(Created, "", "")
	return nil
}

// referredAgain drops, before anything else is done, since when a revision was not
// referred to: it is again.
func (r *round) referredAgain(ctx context.Context, t *task) error {
	if unreferencedSince(t.old()).IsZero() {
		return nil
	}
	annotations := map[string]*string{UnreferencedAnnotation: nil}
	if !t.wish.Rollback {
		annotations[ToAnnotation] = nil
	}
	old, err := r.client.metadata(ctx, t.old(), nil, annotations)
	if err != nil {
		return fmt.Errorf("write controllerrevision %s/%s: %w", t.GetNamespace(), t.old().Name, err)
	}
	t.setOld(old)
	return nil
}

// usedAgain drops, on a new revision that a rollback left unreferenced and that is named
// again, since when it was not.
func (r *round) usedAgain(ctx context.Context, t *task) error {
	if unreferencedSince(t.successor).IsZero() {
		return nil
	}
	successor, err := r.client.metadata(ctx, t.successor, nil, map[string]*string{UnreferencedAnnotation: nil})
	if err != nil {
		return fmt.Errorf("write controllerrevision %s/%s: %w", t.GetNamespace(), t.successor.Name, err)
	}
	t.successor = successor
	return nil
}

var errGoneAgain = errors.New("it existed a moment ago, and does not any more")

// adopt takes what is there for what was to be made, if it is the same: made
// before an end that nobody noticed, or by the family's own software meanwhile.
func (r *round) adopt(ctx context.Context, want *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
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
	from, uid := ancestry(there)
	if source, current := ancestry(want); from != "" && (from != source || uid == current) {
		return there, nil
	}
	return r.client.metadata(ctx, there, nil, pointers(want.Annotations))
}

func (r *round) relabel(ctx context.Context, t *task, j judgement) error {
	_, err := r.client.metadata(ctx, t.source, pointers(j.successor.Labels), nil)
	if moved(err) {
		t.ended(Pending, ReasonChanged, "the revision changed meanwhile")
		return nil
	}
	if err == nil {
		t.ended(Succeeded, "", "")
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
	_, source := ancestry(want)
	if _, ours := ancestors(there)[source]; !ours && !labelled(there, want.Labels) {
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
	return EndIn(want.Name, hex.EncodeToString(digest.Sum(nil))[:8], validation.DNS1123SubdomainMaxLength)
}

// EndIn is a name or a label that ends in a dash and a tail, and has most characters
// at the most. What is cut for it does not end in a separator, which no API server
// takes in front of another one.
func EndIn(text, tail string, most int) string {
	head := text[:min(len(text), most-len(tail)-1)]
	return strings.TrimRight(head, "-._") + "-" + tail
}
