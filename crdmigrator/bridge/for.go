package bridge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/crdmigrator/releasecheck"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// For decides on the steps between a live CRD and the next one. It is pure. An error means that an answer in the
// annotation of the next CRD can't be read.
func For(f Facts) (Bridge, error) {
	b := Bridge{CRD: f.Next.Name, Result: NotNeeded}
	if b.addRefusals(f); b.Result == Blocked || f.Live == nil {
		return b, nil
	}
	b.RemovedVersions = slices.DeleteFunc(names(f.Live), func(v string) bool { return kube.HasVersion(f.Next, v) })
	if err := b.checkNext(f); err != nil {
		return b, err
	}
	if !b.needed(f) {
		b.noteTarget(f, kube.StorageVersion(f.Live))
		return b, nil
	}
	b.Result, b.Target = Ready, targetOf(f)
	if err := b.checkConversions(f); err != nil || b.Result == Blocked {
		return b, err
	}
	b.Steps = b.steps(f)
	if b.checkLastStep(f); b.Result == Ready {
		b.noteSteps()
	}
	b.noteTarget(f, b.Target)
	return b, nil
}

// addRefusals blocks what the API server refuses even after the steps: another group, kind or scope, or an invalid CRD.
func (b *Bridge) addRefusals(f Facts) {
	for _, r := range releasecheck.For(releasecheck.Facts{Live: f.Live, Next: f.Next}).Reasons {
		if r.Result == releasecheck.Refused && (r.Reason != releasecheck.ReasonStoredVersionRemoved || f.unreadable()) {
			b.add(blocker(r.Reason, r.Message, r.Fix))
		}
	}
}

// unreadable reports whether objects may be stored at a version that the live CRD does not have.
func (f Facts) unreadable() bool {
	return f.Live != nil && slices.ContainsFunc(f.Live.Status.StoredVersions, func(v string) bool { return !kube.HasVersion(f.Live, v) })
}

// noteSteps names the steps.
func (b *Bridge) noteSteps() {
	kinds := make([]string, len(b.Steps))
	for i, s := range b.Steps {
		kinds[i] = string(s.Kind)
	}
	b.add(note(ReasonStepsReady, fmt.Sprintf("the API server accepts the next release of %s after the steps %s, with objects stored at %s",
		b.CRD, strings.Join(kinds, ", "), b.Target), ReasonStepsReady.Fix))
}

// checkLastStep checks the next release after the last step. If the API server would still refuse it, the steps are wrong,
// and the bridge has none.
func (b *Bridge) checkLastStep(f Facts) {
	for _, r := range releasecheck.For(releasecheck.Facts{Live: b.after(f), Next: f.Next}).Reasons {
		if r.Result != releasecheck.Safe {
			b.add(blocker(r.Reason, r.Message, r.Fix))
			b.Steps = nil
		}
	}
}

// needed reports whether steps are needed: because the API server would refuse the next CRD now, or because clients would
// lose a version without notice.
func (b *Bridge) needed(f Facts) bool {
	return slices.ContainsFunc(b.RemovedVersions, func(v string) bool {
		return kube.Serves(f.Live, v) || slices.Contains(storedVersions(f.Live), v)
	})
}

// targetOf chooses the version at which objects are stored before the next release. The live storage version needs the
// fewest steps. Otherwise it is the next storage version if the live CRD has it, or else any version of both. If they have
// no version in common, the live CRD gets the next storage version.
func targetOf(f Facts) string {
	live, next := kube.StorageVersion(f.Live), kube.StorageVersion(f.Next)
	common := shared(f.Live, f.Next)
	switch {
	case slices.Contains(common, live):
		return live
	case slices.Contains(common, next), len(common) == 0:
		return next
	}
	return common[0]
}

// checkNext adds notes about fields that the next release drops from versions which it keeps. A release in between might
// have moved their values.
func (b *Bridge) checkNext(f Facts) error {
	for _, name := range shared(f.Live, f.Next) {
		lost, _, err := differences(f, *versionOf(f.Live, name), *versionOf(f.Next, name))
		if err != nil {
			return err
		}
		if len(lost) > 0 {
			b.add(note(ReasonNextDropsFields,
				fmt.Sprintf("%s of the next release of %s drops fields, whose values the API server then drops: %s", name, f.Next.Name, values.JoinPaths(lost)),
				readReleaseNotes().Or(releasecheck.NeedNoValue())))
		}
	}
	return nil
}

// noteTarget adds a note if objects have to be migrated after the next release as well.
func (b *Bridge) noteTarget(f Facts, target string) {
	if next := kube.StorageVersion(f.Next); target != next {
		b.add(note(ReasonMigrateAfterNext,
			fmt.Sprintf("the next release of %s stores %s, and objects are stored at %s until they are migrated", f.Next.Name, next, target),
			migrateAfterNext(f.Next.Name)))
	}
}
