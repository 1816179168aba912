package crossplane

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/externalname"
)

// TypeDrift is the type of the condition that reports differences. Its reasons are
// [externalname.ReasonDiffers], [externalname.ReasonInSync] and [externalname.ReasonUpdated].
const TypeDrift = "Drift"

// Reasons of events.
const (
	reasonDiffers         event.Reason = "ExternalResourceDiffers"
	reasonNameBound       event.Reason = "ExternalNameBound"
	reasonNameNeverFound  event.Reason = "ExternalNameNeverFound"
	reasonOperationFailed event.Reason = "CreationOperationFailed"
)

// driftBytes bounds the diff in a condition and in an event; an event has 1 KiB.
const driftBytes = 900

// diffText returns one line for each difference. Secret values are not in it.
func diffText(differences []Difference) string {
	lines := make([]string, len(differences))
	for i, d := range differences {
		if d.Secret {
			lines[i] = d.Field + ": differs (secret)"
			continue
		}
		if d.Message != "" {
			lines[i] = d.Field + ": " + d.Message
			continue
		}
		lines[i] = fmt.Sprintf("%s: observed %q, desired %q", d.Field, d.Observed, d.Desired)
	}
	return strings.Join(lines, "\n")
}

// clipDiff bounds a diff. The digest distinguishes two diffs with the same beginning.
func clipDiff(text string) string {
	if len(text) <= driftBytes {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return strings.ToValidUTF8(text[:driftBytes], "") + "… (digest " + hex.EncodeToString(sum[:4]) + ")"
}

// announcer records one event for each distinct message about an object. The condition in the status has the last
// message after a restart; the memory has it while the cache lags behind.
type announcer struct {
	recorder event.Recorder
	reason   event.Reason

	mu   sync.Mutex
	last map[types.UID]string
}

func newAnnouncer(recorder event.Recorder, reason event.Reason) *announcer {
	return &announcer{recorder: recorder, reason: reason, last: map[types.UID]string{}}
}

// announce records the message unless it equals the last one or the one in the status.
func (a *announcer) announce(mg resource.Managed, inStatus, message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last[mg.GetUID()] != message && inStatus != message {
		a.recorder.Event(mg, event.Event{Type: event.TypeWarning, Reason: a.reason, Message: message})
	}
	a.last[mg.GetUID()] = message
}

// reset drops the last message, so the next one is recorded.
func (a *announcer) reset(mg metav1.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, mg.GetUID())
}

// reportDrift sets the condition, and announces each distinct diff.
func reportDrift(mg resource.Managed, a *announcer, text string) {
	c := condition{kind: TypeDrift, status: corev1.ConditionFalse, reason: externalname.ReasonInSync.Name, generation: mg.GetGeneration()}
	if text == "" {
		a.reset(mg)
		setCondition(mg, c)
		return
	}
	c.status, c.reason, c.message = corev1.ConditionTrue, externalname.ReasonDiffers.Name, clipDiff(text)
	inStatus := ""
	if before := mg.GetCondition(TypeDrift); string(before.Reason) == externalname.ReasonDiffers.Name {
		inStatus = before.Message
	}
	const prefix = "External resource differs from the spec: "
	a.announce(mg, prefix+inStatus, prefix+c.message)
	setCondition(mg, c)
}

// driftAfterUpdate sets the condition to unknown until the next observation after an update.
func driftAfterUpdate(mg resource.Managed) {
	setCondition(mg, condition{
		kind: TypeDrift, status: corev1.ConditionUnknown, reason: externalname.ReasonUpdated.Name, generation: mg.GetGeneration(),
		message: "The external resource was updated. The next observation compares it.",
	})
}
