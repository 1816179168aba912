package revision

import (
	"errors"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/internal/cluster"
	"github.com/godwit-dev/godwit/revision/reference"
)

// Request asks for one upgrade, or for its rollback.
type Request struct {
	Name string
	// UID of the revision; empty means whichever revision has the name.
	UID types.UID
	// Seen means that a scan has found the revision, or references to it. That there is neither
	// any more is no error then.
	Seen bool
	// Policy; nil means the upgrader's.
	Policy *decision.Policy
	// Rollback repoints all references to the source again.
	Rollback bool
	// AfterRollback upgrades a source that was rolled back. Otherwise it is left alone.
	AfterRollback bool
}

// Phase is how far one upgrade is. It is reported to users; no stage decides by it.
type Phase string

const (
	// Pending means that nothing is written: no pass has begun with the upgrade, only labels
	// are to be written, or a rollback waits.
	Pending Phase = "Pending"
	// Analyzing means that a pass has begun, and could not read what there is.
	Analyzing Phase = "Analyzing"
	// Converted means that the data can be converted and nothing is written. The upgrade waits
	// for a referrer, or the API server did not accept the replacement.
	Converted Phase = "Converted"
	// Created means that the replacement exists, and that references were left to repoint when
	// the pass ended.
	Created Phase = "Created"
	// Repointed means that no reference to the old revision is left, and that the time of this
	// could not be written to it.
	Repointed Phase = "Repointed"
	// InUse means that the replacement exists, and that the source is still referred to.
	InUse Phase = "InUse"
	// Retained means that no object refers to the source, which is kept for the retention.
	Retained Phase = "Retained"
	// Succeeded means that the source is deleted, or was at the target version.
	Succeeded Phase = "Succeeded"
	// Skipped means that there is nothing to upgrade.
	Skipped Phase = "Skipped"
	// Failed means that user action is required.
	Failed Phase = "Failed"
	// RolledBack means that all references name the source again.
	RolledBack Phase = "RolledBack"
)

// Ended reports whether a phase leaves nothing to do, neither to Godwit nor to the user.
func (p Phase) Ended() bool { return p == Succeeded || p == Skipped || p == RolledBack }

// Result is how far one upgrade is, and why not further.
type Result struct {
	decision.Item
	Phase Phase `json:"phase"`
	// ResourceVersion and Hash are the source's, as it was found before this pass wrote
	// anything; empty where it was not found.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Hash of the source's data, as [decision.Hash] makes it.
	Hash            string    `json:"hash,omitempty"`
	ReplacementUID  types.UID `json:"replacementUID,omitempty"`
	ReplacementHash string    `json:"replacementHash,omitempty"`
}

// step says which stage takes an upgrade next. Steps steer a pass; phases report it.
type step int

const (
	// stepDone means that no stage of this pass has anything left to do.
	stepDone step = iota
	stepCreate
	stepRollback
	stepRepoint
	// stepRelease waits for a scan that shows whether the old revision is still referred to.
	stepRelease
	// stepDelete waits for the deletion of the old revision.
	stepDelete
)

// MaxScanAge is how old the scan may be by which a revision is deleted, counted from the end of the scan; an older one is
// taken again. An upgrade reads its revision live where the list of its batch was begun longer ago. It is several times what
// the deletion of a batch takes without a rate limit, and short enough that few clients refer to a revision in between.
const MaxScanAge = 5 * time.Second

// upgrade is one request under way.
type upgrade struct {
	request Request
	policy  decision.Policy
	result  Result
	next    step

	listed      *appsv1.ControllerRevision // the source as the list of the batch has it; nil where it is to be read live
	listBegun   time.Time
	source      *appsv1.ControllerRevision
	replacement *appsv1.ControllerRevision
	repointing  repointing
	unreadable  bool // by the installed software

	deleted bool                       // the old revision is deleted
	backup  *appsv1.ControllerRevision // of the old revision, from just before its deletion

	mu         sync.Mutex
	repointErr error // why a reference could not be written

	phaseBefore Phase // before an attempt that failed and may be tried again
}

// repointing has the two revisions that references are repointed from and to. The stages create and rollback set it,
// so that the stages after them are the same for both.
type repointing struct {
	from, to string    // names
	fromUID  types.UID // of the revision that had the name from when it was read
	// old is the revision that is deleted in the end; nil if it is gone.
	old *appsv1.ControllerRevision
	// target is the revision that references are to name.
	target *appsv1.ControllerRevision
	// kept is reported while the old revision is retained, deleted once it is deleted.
	kept, deleted Phase
	// waiting is reported while a revision that a restore needs is missing.
	waiting Phase
	// inUseForRestore is reported while only a restore needs the old revision.
	inUseForRestore status
	// annotated says that the old revision names its target in ToAnnotation for as long as no
	// object refers to it, and that what a restore looks up instead of it is its replacement.
	annotated bool
	// shared says that several upgrades may have the same old revision.
	shared bool
}

// status is a phase and its reason.
type status struct {
	phase  Phase
	reason *godwit.Reason
}

// forward repoints references from the source to the replacement: an upgrade.
func (u *upgrade) forward() repointing {
	return repointing{
		fromUID: u.result.UID, from: u.request.Name, to: u.replacement.Name, old: u.source, target: u.replacement,
		kept: Retained, deleted: Succeeded, waiting: InUse, inUseForRestore: status{InUse, decision.ReasonNeededForRestore}, annotated: true,
	}
}

// backward repoints references from the replacement to the source: a rollback.
func (u *upgrade) backward() repointing {
	return repointing{
		fromUID: u.replacement.UID, from: u.replacement.Name, to: u.request.Name, old: u.replacement, target: u.source,
		kept: RolledBack, deleted: RolledBack, waiting: Pending, inUseForRestore: status{RolledBack, nil}, shared: true,
	}
}

// GetNamespace and GetName implement walk.Object.
func (u *upgrade) GetNamespace() string { return u.result.Namespace }

// GetName returns the name of the source.
func (u *upgrade) GetName() string { return u.request.Name }

// setStatus reports how far the upgrade is. No stage decides by it.
func (u *upgrade) setStatus(p Phase, reason *godwit.Reason, message string) {
	u.result.Phase, u.result.Reason, u.result.Message = p, reason, message
}

// setError reports the error that ended a step. An error that the API server would answer
// again makes the upgrade Failed.
func (u *upgrade) setError(err error) {
	err = cluster.Forbidden(err)
	var reading *cluster.ReadError
	switch {
	case !permanent(err):
		u.setStatus(u.result.Phase, decision.ReasonUnanswered, err.Error())
	case errors.As(err, &reading):
		u.setStatus(u.result.Phase, decision.ReasonForbidden, err.Error())
	default:
		u.setStatus(Failed, decision.ReasonRefused, err.Error())
	}
}

// permanent reports whether the API server answered that a request is not acceptable, so
// that it answers the same next time. A 403 was retried before, since an API server that starts answers so, too.
func permanent(err error) bool { return apierror.IsForbidden(err) || apierror.IsRefusal(err) }

// recordError keeps why a reference could not be written. A permanent error says more than a
// conflict. Several referrers of a shared revision may report at once.
func (u *upgrade) recordError(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.repointErr == nil || permanent(err) {
		u.repointErr = err
	}
}

// mayWrite reports whether a referrer may be written, which may have started to run since the plan. The policy is for what
// runs with a revision that can be read. Software that can't read a revision, as when it is gone, can't stop what runs with it.
func (u *upgrade) mayWrite(r *reference.Referrer) bool {
	whileRunning := u.policy.OnRunning == decision.Hold || u.unreadable || u.repointing.old == nil
	for _, one := range []*reference.Referrer{r, r.Controlled} {
		if one != nil && (one.NotReady != "" || one.Running && !whileRunning) {
			return false
		}
	}
	return true
}

// setReplacement sets the revision that replaces the source.
func (u *upgrade) setReplacement(r *appsv1.ControllerRevision) {
	u.replacement = r
	u.result.Replacement, u.result.ReplacementUID, u.result.ReplacementHash = r.Name, r.UID, decision.Hash(r)
}

// keepOld ends a pass with the old revision kept.
func (u *upgrade) keepOld(reason *godwit.Reason, message string) {
	u.next = stepDone
	u.setStatus(u.repointing.kept, reason, message)
}

// setDeleted ends an upgrade or a rollback: the old revision is gone.
func (u *upgrade) setDeleted() {
	u.next, u.deleted = stepDone, true
	u.result.Until = time.Time{}
	u.setStatus(u.repointing.deleted, nil, "")
}

// dropData frees what only the steps of a batch need: with the data of both revisions of each
// upgrade, a namespace of ten thousand VirtualMachines would take a hundred megabytes. The
// names stay: later batches look for references to revisions that this one has deleted.
func (u *upgrade) dropData() {
	u.listed, u.source, u.replacement, u.backup, u.repointing.old, u.repointing.target = nil, nil, nil, nil, nil, nil
}

// filter returns the upgrades for which keep is true.
func filter(upgrades []*upgrade, keep func(*upgrade) bool) []*upgrade {
	var all []*upgrade
	for _, u := range upgrades {
		if keep(u) {
			all = append(all, u)
		}
	}
	return all
}

// dueFor returns the upgrades whose next step is this one.
func dueFor(upgrades []*upgrade, next step) []*upgrade {
	return filter(upgrades, func(u *upgrade) bool { return u.next == next })
}

func rolledBackMessage(at time.Time) string {
	return "it was rolled back at " + at.UTC().Format(time.RFC3339)
}

// changedMessage is for a revision that another client wrote since it was read.
const changedMessage = "the revision changed meanwhile"

// setChanged leaves a revision that another client wrote to the next attempt. Other errors
// are returned.
func (u *upgrade) setChanged(err error) error {
	if !apierror.IsConflictOrNotFound(err) {
		return err
	}
	u.setStatus(u.result.Phase, decision.ReasonChanged, changedMessage)
	return nil
}

var errDeletedMeanwhile = errors.New("it existed a moment ago, and is gone")
