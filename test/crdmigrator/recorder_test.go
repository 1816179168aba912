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

// logLines are an operator's log lines: errors, and informative lines at the default
// verbosity of operators.
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

// errors returns the lines that were logged as errors, except client-go's about an
// answer whose request was canceled.
func (l *logLines) errors() []string {
	return slices.DeleteFunc(l.with(`"error"=`), func(line string) bool {
		return strings.Contains(line, "reading response body") && strings.Contains(line, "context canceled")
	})
}

// informative returns the lines that are not errors.
func (l *logLines) informative(part string) []string {
	return slices.DeleteFunc(l.with(part), func(line string) bool { return !strings.Contains(line, `"level"=0`) })
}

// recordedEvent is an event as the reconciler emitted it.
type recordedEvent struct {
	eventType, reason, note string
	regarding               string
}

// recorder keeps events in order. The real recorder aggregates similar events, and sends
// each from a goroutine of its own.
type recorder struct {
	next events.EventRecorder // gets the same events; may be nil

	mu     sync.Mutex
	events []recordedEvent
}

//nolint:revive // the interface has this many arguments
func (r *recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	name := ""
	if o, err := meta.Accessor(regarding); err == nil {
		name = o.GetName()
	}
	r.mu.Lock()
	r.events = append(r.events, recordedEvent{eventType: eventType, reason: reason, note: fmt.Sprintf(note, args...), regarding: name})
	r.mu.Unlock()
	if r.next != nil {
		r.next.Eventf(regarding, related, eventType, reason, action, note, args...)
	}
}

func (r *recorder) all() []recordedEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// warnings returns the events of type Warning.
func (r *recorder) warnings() []recordedEvent {
	return slices.DeleteFunc(r.all(), func(e recordedEvent) bool { return e.eventType != corev1.EventTypeWarning })
}
