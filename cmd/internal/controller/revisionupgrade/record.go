package revisionupgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
)

var hashSeed = maphash.MakeSeed()

// hashOf returns the hash of a result. A status with this hash is neither read nor written again.
func hashOf(r revision.Result, s status.Summary) (uint64, error) {
	fresh := v1alpha1.ControllerRevisionUpgradeStatus{}
	fill(&fresh, r)
	text, err := json.Marshal([]any{fresh, s})
	if err != nil {
		return 0, fmt.Errorf("encode the status of controllerrevision %s: %w", r.Name, err)
	}
	return maphash.Bytes(hashSeed, text), nil
}

// record writes the status of an upgrade, and announces a new phase.
func (u *Upgrades) record(ctx context.Context, one *v1alpha1.ControllerRevisionUpgrade, r revision.Result) (written, error) {
	s := summaryOf(one, r)
	hash, err := hashOf(r, s)
	if err != nil {
		return written{}, err
	}
	// The spec may change between the read and the write of a visit: the resourceVersion of the write is then that of the new spec.
	if last := u.schedule.Last(one).written; isObserved(one) && last == (written{one.ResourceVersion, hash}) {
		return last, nil
	}
	full, err := u.full(ctx, one)
	if err != nil || full == nil {
		return written{}, err
	}
	w := status.NewWriter(u.Client, u.Reader, full)
	err = w.Write(ctx, func(now *v1alpha1.ControllerRevisionUpgrade) {
		if afterRollback(now) && r.Phase == revision.Analyzing {
			now.Status.Phase = v1alpha1.UpgradePhase(r.Phase) // the mark of the rollback is still on the revision
		}
		fill(&now.Status, r)
		s.Apply(now)
	})
	if err != nil {
		return written{}, err
	}
	known := w.Known()
	if known.Status.Phase != full.Status.Phase {
		s.Announce(u.Recorder, known, "UpgradeRevision")
	}
	return written{known.ResourceVersion, hash}, nil
}

// suspend writes that an upgrade is suspended.
func (u *Upgrades) suspend(ctx context.Context, one *v1alpha1.ControllerRevisionUpgrade) error {
	if isObserved(one) && readyReason(one) == ReasonSuspended.Name {
		return nil
	}
	full, err := u.full(ctx, one)
	if err != nil || full == nil {
		return err
	}
	return status.NewWriter(u.Client, u.Reader, full).Write(ctx, func(now *v1alpha1.ControllerRevisionUpgrade) {
		if now.Status.Phase == "" {
			now.Status.Phase = v1alpha1.UpgradePhase(revision.Pending)
		}
		suspended.Apply(now)
	})
}

// refuse writes that the upgrade has the format of a newer release.
func (u *Upgrades) refuse(ctx context.Context, one *v1alpha1.ControllerRevisionUpgrade) error {
	if isObserved(one) && readyReason(one) == decision.ReasonNewerFormat.Name {
		return nil
	}
	full, err := u.full(ctx, one)
	if err != nil || full == nil {
		return err
	}
	s := status.Summary{State: status.StateStalled, Reason: decision.ReasonNewerFormat.Name, Message: newerFormat(one).Error()}
	if err := status.NewWriter(u.Client, u.Reader, full).Write(ctx, func(now *v1alpha1.ControllerRevisionUpgrade) { s.Apply(now) }); err != nil {
		return err
	}
	s.Announce(u.Recorder, full, "UpgradeRevision")
	return nil
}

// full returns an upgrade with its whole status, or nil if it is deleted. Before the first status, the cache has the
// whole upgrade.
func (u *Upgrades) full(ctx context.Context, one *v1alpha1.ControllerRevisionUpgrade) (*v1alpha1.ControllerRevisionUpgrade, error) {
	if one.Status.Phase == "" && len(one.Status.Conditions) == 0 {
		return one, nil
	}
	full := &v1alpha1.ControllerRevisionUpgrade{}
	if err := u.Reader.Get(ctx, client.ObjectKeyFromObject(one), full); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("read controllerrevisionupgrade %s/%s: %w", one.Namespace, one.Name, err)
	}
	if full.UID != one.UID {
		return nil, nil
	}
	full.Generation = one.Generation // the result is about this spec
	return full, nil
}
