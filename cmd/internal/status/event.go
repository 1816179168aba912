package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/godwit-dev/godwit/internal/kube"
)

// EventType is the type of the event for a Summary.
func (s Summary) EventType() string {
	if s.Warning || s.State == StateStalled {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// Announce records an event about an object. The caller decides whether a status needs an event; few do.
func (s Summary) Announce(recorder events.EventRecorder, about runtime.Object, action string) {
	recorder.Eventf(about, nil, s.EventType(), s.Reason, action, "%s", kube.EventNote(s.Message))
}
