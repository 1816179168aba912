package revisionupgrade

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/format"
)

// triggerPass is one reconciliation of a trigger: scan, ensure upgrades, aggregate, conditions.
type triggerPass struct {
	*Triggers
	trigger *v1alpha1.ControllerRevisionUpgradeTrigger // with the status to write
	writer  *status.Writer[*v1alpha1.ControllerRevisionUpgradeTrigger]

	scanned bool
	others  tally // upgrades in scope that this trigger did not create; empty before a scan
	unseen  int   // upgrades that were created or deleted, and that the cache does not have yet
}

func (t *Triggers) newPass(trigger *v1alpha1.ControllerRevisionUpgradeTrigger) *triggerPass {
	return &triggerPass{Triggers: t, trigger: trigger, writer: status.NewWriter(t.Client, t.Reader, trigger)}
}

// advance advances a trigger as far as possible. It returns the time until the next pass if no event arrives before;
// zero means that none is needed.
func (p *triggerPass) advance(ctx context.Context) (status.Summary, time.Duration, error) {
	s, spec := &p.trigger.Status, p.trigger.Spec
	if err := format.CheckObject("controllerrevisionupgradetrigger "+p.trigger.Name, p.trigger); err != nil {
		return status.Summary{}, 0, status.NewStalledError(ReasonNewerFormat.Name, err.Error()+"; "+format.Do)
	}
	switch {
	case spec.Suspend:
		return suspended, 0, nil
	case s.CompletionTime != nil && !continuous(spec):
		return p.finish(ctx)
	}
	if p.scanDue() {
		if err := p.discover(ctx); err != nil {
			return status.Summary{}, 0, err
		}
	}
	summary, err := p.aggregate(ctx)
	if err == nil && !p.scanned && p.needsConfirmation(summary) {
		summary, err = p.confirm(ctx)
	}
	switch {
	case err != nil:
		return status.Summary{}, 0, err
	case p.unseen > 0: // they can't be counted yet
		s.CompletionTime = nil
		return p.upgrading(spec), status.Interval, nil
	case createsUpgrades(spec.Mode) && (summary.State != status.StateReady || summary.Reason == ReasonSourcesRetained.Name):
		s.CompletionTime = nil
		return summary, p.untilScan(), nil
	}
	return p.complete(ctx, summary)
}

// confirm scans before the trigger reports that no revision is left.
func (p *triggerPass) confirm(ctx context.Context) (status.Summary, error) {
	if err := p.discover(ctx); err != nil {
		return status.Summary{}, err
	}
	return p.aggregate(ctx)
}

// needsConfirmation reports whether a new Summary says that no revision is left. Objects may have been restored since
// the last scan, and the versions at which the cluster stores objects have changed.
func (p *triggerPass) needsConfirmation(s status.Summary) bool {
	known := p.trigger.Status.Conditions
	return s.State == status.StateReady && !(s.SameReason(known) && meta.IsStatusConditionTrue(known, v1alpha1.ConditionReady))
}

// discover scans, and creates the missing upgrades. It sets the time of the scan last, so that a manager that ends
// before scans again. The counts of a confirming scan are not used: upgraded revisions are up to date by then.
func (p *triggerPass) discover(ctx context.Context) error {
	f, err := p.scan(ctx, p.trigger)
	if err != nil {
		return err
	}
	p.scanned = true
	at := metav1.Time{Time: p.Clock.Now()}
	s := &p.trigger.Status
	s.VersionCounts, s.DroppableVersions = nil, f.inventory.Droppable
	for _, v := range f.inventory.VersionCounts {
		s.VersionCounts = append(s.VersionCounts, v1alpha1.RevisionVersionCount(v))
	}
	setInventory(p.trigger, f)
	if p.scanDue() {
		s.Counts, s.Failures = &f.counts, f.failures
	}
	if err := p.ensure(ctx, f.candidates); err != nil {
		return err
	}
	s.LastScanTime = &at
	return nil
}

// ensure creates the missing upgrades. It writes the results of the scan to the status before the first one, and the
// progress every [status.Interval]. If no upgrade is missing, it writes no status.
func (p *triggerPass) ensure(ctx context.Context, candidates []candidate) error {
	e := &ensurer{client: p.Client, reader: p.Reader, trigger: p.trigger}
	x, err := e.find(ctx, candidates)
	if err != nil {
		return err
	}
	p.others = x.others
	for i, m := range x.missing {
		if p.writer.Due() <= 0 {
			if err := p.report(ctx, i, len(x.missing)); err != nil {
				return err
			}
		}
		p.unseen++
		if err := e.ensure(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// report writes the results of the scan, and later the progress of the created upgrades.
func (p *triggerPass) report(ctx context.Context, created, missing int) error {
	if err := p.requireActive(ctx, p.trigger); err != nil {
		return err
	}
	if created > 0 {
		if _, err := p.aggregate(ctx); err != nil {
			return err
		}
		p.trigger.Status.Counts.Pending += int64(missing - created)
	}
	return p.write(ctx, p.upgrading(p.trigger.Spec))
}

// aggregate counts the upgrades of the trigger, and those of others that the scan found. A trigger that creates no upgrades has
// the counts of the scan.
func (p *triggerPass) aggregate(ctx context.Context) (status.Summary, error) {
	s := &p.trigger.Status
	if !createsUpgrades(p.trigger.Spec.Mode) {
		return p.summaryOf(p.trigger.Spec, *s.Counts), nil
	}
	list := &v1alpha1.ControllerRevisionUpgradeList{}
	own := client.MatchingLabels{TriggerLabel: string(p.trigger.UID)}
	if err := p.Client.List(ctx, list, own, client.UnsafeDisableDeepCopy); err != nil {
		return status.Summary{}, fmt.Errorf("list controllerrevisionupgrades: %w", err)
	}
	all := p.others
	all.counts.Succeeded, all.counts.Relabelled = 0, 0 // their own trigger counts them
	for i := range list.Items {
		all.add(&list.Items[i])
	}
	all.counts.Discovered, all.counts.UpToDate = s.Counts.Discovered, s.Counts.UpToDate
	s.Counts, s.Failures = &all.counts, all.failures
	summary := p.summaryOf(p.trigger.Spec, all.counts)
	if summary.State == status.StateReady && all.retains {
		summary.Reason = ReasonSourcesRetained.Name
		summary.Message = "all references name new revisions; the old ones are deleted after the retention: see status.retainedUntil of the upgrades"
	}
	return summary, nil
}

// write writes the status, and an event if the reason has changed.
func (p *triggerPass) write(ctx context.Context, s status.Summary) error {
	known := p.writer.Known().Status.Conditions
	s.Apply(p.trigger)
	next := p.trigger.Status.DeepCopy()
	if err := p.writer.Write(ctx, func(now *v1alpha1.ControllerRevisionUpgradeTrigger) { now.Status = *next.DeepCopy() }); err != nil {
		return err
	}
	if !s.SameReason(known) {
		s.Announce(p.Recorder, p.trigger, "UpgradeRevisions")
	}
	return nil
}

// complete records that no work is left.
func (p *triggerPass) complete(ctx context.Context, s status.Summary) (status.Summary, time.Duration, error) {
	if p.trigger.Status.CompletionTime == nil {
		p.trigger.Status.CompletionTime = &metav1.Time{Time: p.Clock.Now().Truncate(time.Second)}
	}
	if continuous(p.trigger.Spec) {
		return s, p.untilScan(), nil
	}
	return p.finish(ctx)
}

// finish deletes a completed trigger after its TTL.
func (p *triggerPass) finish(ctx context.Context) (status.Summary, time.Duration, error) {
	spec, s := p.trigger.Spec, p.trigger.Status
	done := p.summaryOf(spec, *s.Counts)
	if spec.TTLSecondsAfterFinished == nil {
		return done, 0, nil
	}
	left := time.Duration(*spec.TTLSecondsAfterFinished)*time.Second - p.Clock.Since(s.CompletionTime.Time)
	if left > 0 {
		return done, left, nil
	}
	return done, 0, client.IgnoreNotFound(p.Client.Delete(ctx, p.trigger, client.Preconditions{UID: &p.trigger.UID}))
}

// scanDue reports whether it is time to scan. A trigger that runs once scans once.
func (p *triggerPass) scanDue() bool {
	last := p.trigger.Status.LastScanTime
	return last == nil || continuous(p.trigger.Spec) && p.Clock.Since(last.Time) >= p.scanEvery()
}

// untilScan returns the time until the next scan; zero if events are enough. Upgrades of other triggers and of users
// cause no event.
func (p *triggerPass) untilScan() time.Duration {
	if !continuous(p.trigger.Spec) && p.others.counts == (v1alpha1.RevisionCounts{}) {
		return 0
	}
	return max(p.scanEvery()-p.Clock.Since(p.trigger.Status.LastScanTime.Time), time.Second)
}
