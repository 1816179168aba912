package crdmigrator_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// logLines is what an operator logs for a person to read: errors, and what is
// informative at the verbosity that operators run with.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, line)
	}, funcr.Options{})
}

func (l *logLines) with(part string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.lines), func(line string) bool { return !strings.Contains(line, part) })
}

// errors are the lines that were logged as such, but for client-go's about an
// answer that was cut off because nobody wanted it any more.
func (l *logLines) errors() []string {
	return slices.DeleteFunc(l.with(`"error"=`), func(line string) bool {
		return strings.Contains(line, "reading response body") && strings.Contains(line, "context canceled")
	})
}

// informative are the lines that say something without being an error.
func (l *logLines) informative(part string) []string {
	return slices.DeleteFunc(l.with(part), func(line string) bool { return !strings.Contains(line, `"level"=0`) })
}

// told is an event as the reconciler has told it.
type told struct {
	eventType, reason, note string
	regarding               string
}

// recorder keeps what it is told, in order, which the real one does not: that
// folds similar events into one and sends each from a goroutine of its own.
type recorder struct {
	next events.EventRecorder // told the same; may be nil

	mu   sync.Mutex
	told []told
}

//nolint:revive // so many arguments has the method of the interface
func (r *recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	name := ""
	if o, err := meta.Accessor(regarding); err == nil {
		name = o.GetName()
	}
	r.mu.Lock()
	r.told = append(r.told, told{eventType: eventType, reason: reason, note: fmt.Sprintf(note, args...), regarding: name})
	r.mu.Unlock()
	if r.next != nil {
		r.next.Eventf(regarding, related, eventType, reason, action, note, args...)
	}
}

func (r *recorder) all() []told {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}

// warnings are the events that ask for somebody's attention.
func (r *recorder) warnings() []told {
	return slices.DeleteFunc(r.all(), func(e told) bool { return e.eventType != corev1.EventTypeWarning })
}
