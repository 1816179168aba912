package status

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FieldManager names the manager's writes in metadata.managedFields.
const FieldManager = "godwit"

// Interval is the least time between two writes of progress, and between any write and progress after it: each write is an
// event to every client that watches the object.
const Interval = 5 * time.Second

// flushTimeout bounds the last write of a manager that stops. A pod has 30 s to end.
const flushTimeout = 5 * time.Second

// Change changes the status of an object. After a conflict, a Writer calls it again with the status that another client
// wrote.
type Change[T Object] func(T)

// Writer writes the status of one object. Its methods may be called concurrently.
type Writer[T Object] struct {
	client client.Client
	reader client.Reader // live

	mu      sync.Mutex
	known   T // as it was last read or written
	noted   []Change[T]
	written time.Time // the end of the last write, also of one that failed
}

// NewWriter returns a Writer for an object, of which it keeps a copy. The reader must read from the API server: a cache
// may return the status that caused a conflict.
func NewWriter[T Object](c client.Client, reader client.Reader, o T) *Writer[T] {
	return &Writer[T]{client: c, reader: reader, known: copyOf(o)}
}

// Known returns a copy of the object as it was last read or written.
func (w *Writer[T]) Known() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	return copyOf(w.known)
}

// Note adds a change to the next write.
func (w *Writer[T]) Note(change Change[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted = append(w.noted, change)
}

// Due returns how long the next write of progress must wait; a negative time means not at all.
func (w *Writer[T]) Due() time.Duration { return w.due(Interval) }

func (w *Writer[T]) due(interval time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return interval - time.Since(w.written)
}

// Write applies the noted changes and this one, and patches the status if it differs. After a conflict, it reads the
// object and applies the changes again, so that the status is never a mix of two clients' fields. It returns nil if the
// object is deleted.
func (w *Writer[T]) Write(ctx context.Context, change Change[T]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted = append(w.noted, change)
	defer func() { w.written = time.Now() }()
	err := retry.OnError(retry.DefaultRetry, apierrors.IsConflict, func() error {
		err := w.send(ctx)
		if !apierrors.IsConflict(err) {
			return err
		}
		if failed := w.reread(ctx); failed != nil {
			return failed
		}
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) && !errors.Is(err, errReplaced) {
		return fmt.Errorf("write the status of %s: %w", nameOf(w.known), err)
	}
	w.noted = nil
	return nil
}

// Flush sends the noted changes of a manager that stops, even though its context has ended. After an error the changes
// are lost: the next manager continues from the status in the API server.
func (w *Writer[T]) Flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.send(ctx)
}

// send patches the status once.
func (w *Writer[T]) send(ctx context.Context) error {
	next := copyOf(w.known)
	for _, change := range w.noted {
		change(next)
	}
	if diff, err := client.MergeFrom(w.known).Data(next); err != nil || string(diff) == "{}" {
		return err
	}
	patch := client.MergeFromWithOptions(w.known, client.MergeFromWithOptimisticLock{})
	if err := w.client.Status().Patch(ctx, next, patch, client.FieldOwner(FieldManager)); err != nil {
		return err
	}
	w.setKnown(next)
	return nil
}

// errReplaced means that another object has the name now.
var errReplaced = errors.New("the object was deleted, and another one has its name")

func (w *Writer[T]) reread(ctx context.Context) error {
	now := reflect.New(reflect.TypeOf(w.known).Elem()).Interface().(T) //nolint:forcetypeassert // it is the type of T
	if err := w.reader.Get(ctx, client.ObjectKeyFromObject(w.known), now); err != nil {
		return err
	}
	if now.GetUID() != w.known.GetUID() {
		return errReplaced
	}
	w.setKnown(now)
	return nil
}

// setKnown records the object, but keeps the generation at the start of the work: the status is about that spec, even
// if the spec has changed meanwhile.
func (w *Writer[T]) setKnown(o T) {
	o.SetGeneration(w.known.GetGeneration())
	w.known = o
}

// nameOf returns the name of an object in kubectl's form. Go types have an empty kind.
func nameOf(o client.Object) string {
	name := strings.ToLower(reflect.TypeOf(o).Elem().Name()) + " "
	if o.GetNamespace() != "" {
		name += o.GetNamespace() + "/"
	}
	return name + o.GetName()
}

func copyOf[T Object](o T) T { return o.DeepCopyObject().(T) } //nolint:forcetypeassert // a copy has the type of its original
