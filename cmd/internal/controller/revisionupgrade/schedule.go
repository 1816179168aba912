package revisionupgrade

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

// turnUpgrades bounds a turn, and with it the time until a suspension or a rollback takes effect: at 20 writes per second,
// about a minute.
const turnUpgrades = 200

// schedule decides which upgrades of a namespace to visit. The zero value is ready to use. It is lost with the process;
// the next manager visits each upgrade once more.
type schedule struct {
	mu     sync.Mutex
	visits map[string]map[types.UID]visit // by namespace
}

// visit is the record of the last visit to an upgrade.
type visit struct {
	next time.Time
	// settings are those that the visit used. A change of the trigger changes them without a change of the upgrade.
	settings settings
	// written is the status as it was written.
	written written
}

// written is a status that was written: the hash of its content, and the resourceVersion of the upgrade since.
type written struct {
	resourceVersion string
	hash            uint64
}

// Take returns the upgrades to visit now: new ones, those with a changed spec or other settings, and those whose time has come. An
// upgrade whose write was refused is part of every turn: a webhook may accept the references of several upgrades only
// together. Take also returns how long to wait for the next turn; zero if none is scheduled.
func (s *schedule) Take(namespace string, open []*v1alpha1.ControllerRevisionUpgrade, now time.Time) (turn []*v1alpha1.ControllerRevisionUpgrade, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, kept := s.visits[namespace], map[types.UID]visit{}
	var refused []*v1alpha1.ControllerRevisionUpgrade
	for _, one := range open {
		last, visited := known[one.UID]
		if visited {
			kept[one.UID] = last
		}
		switch {
		case isObserved(one) && last.settings == settingsOf(one) && last.next.After(now):
			wait = shorterWait(wait, last.next.Sub(now))
			if phaseOf(one) == revision.Failed && readyReason(one) == decision.ReasonRefused.Name {
				refused = append(refused, one)
			}
		case len(turn) < turnUpgrades:
			turn = append(turn, one)
		default:
			wait = time.Millisecond // the next turn follows at once
		}
	}
	if len(turn) > 0 {
		turn = append(turn, refused[:min(len(refused), turnUpgrades-len(turn))]...)
	}
	s.dropClosed(namespace, kept)
	return turn, wait
}

// dropClosed drops the records of upgrades that are no longer open.
func (s *schedule) dropClosed(namespace string, visits map[types.UID]visit) {
	if s.visits == nil {
		s.visits = map[string]map[types.UID]visit{}
	}
	s.visits[namespace] = visits
	if len(visits) == 0 {
		delete(s.visits, namespace)
	}
}

// Set records a visit.
func (s *schedule) Set(one *v1alpha1.ControllerRevisionUpgrade, v visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.visits == nil {
		s.visits = map[string]map[types.UID]visit{}
	}
	if s.visits[one.Namespace] == nil {
		s.visits[one.Namespace] = map[types.UID]visit{}
	}
	s.visits[one.Namespace][one.UID] = v
}

// Last returns the last visit to an upgrade; the zero value if there was none.
func (s *schedule) Last(one *v1alpha1.ControllerRevisionUpgrade) visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.visits[one.Namespace][one.UID]
}

const (
	retrySoon   = 15 * time.Second // another client wrote, or the API server did not answer
	retryLater  = time.Minute      // a virtual machine is to stop, or a reference to go
	retryRarely = 10 * time.Minute // user action is required
)

// dateResolution is the resolution of the Date header, from which Godwit reads the API server's clock.
const dateResolution = time.Second

// pauseAfter returns the pause after a scan if the upgrades only wait for other objects. It is nine times the duration
// of the scan, so scans take at most a tenth of the time.
func pauseAfter(scan time.Duration) time.Duration { return min(max(retryLater, 10*scan), retryRarely) }

// nextVisit returns the time until the next visit to an upgrade; zero if it needs none. pause is the time for an
// upgrade that waits for other objects.
func nextVisit(r revision.Result, now time.Time, pause time.Duration) time.Duration {
	switch {
	case r.Phase == revision.InUse && r.Reason == decision.ReasonChanged:
		return pause // other clients keep changing it
	case r.Reason == decision.ReasonUnanswered, r.Reason == decision.ReasonChanged, r.Reason == decision.ReasonUnconfirmed:
		return retrySoon
	case r.Reason == decision.ReasonForbidden:
		return retryRarely
	case r.Reason == decision.ReasonDangling:
		return retryLater // the virtual machine may stop
	case r.Reason == decision.ReasonRetained:
		if left := r.Until.Sub(now); left > 0 {
			return left + dateResolution
		}
		return pause // this clock is ahead of the API server's, which the retention uses
	case r.Phase == revision.RolledBack && !r.Until.IsZero():
		return pause // an object still needs the new revision
	case r.Phase.Ended():
		return 0
	case r.Phase == revision.Failed:
		return retryRarely // a user may have repaired it
	case r.Phase == revision.Retained && r.Until.IsZero():
		return retryRarely // a reference may come back
	}
	return pause
}

// shorterWait returns the shorter of two waits; zero means no wait.
func shorterWait(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
