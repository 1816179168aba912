package rescue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// adoption bounds the wait for an API server to serve the changed spec. It takes milliseconds, or up to a minute
	// if requests are under way.
	adoption = 2 * time.Minute
	// adoptionPause is the time between two checks of what the API server serves.
	adoptionPause = 200 * time.Millisecond
	// conflicts bounds the passes over objects that other clients keep writing.
	conflicts = 5
	// maxPause bounds the pause between two passes: a user at a terminal waits less for other clients than a control loop.
	maxPause = 5 * time.Second
)

// ErrIncomplete means that the API server did not write every object. The report names them.
var ErrIncomplete = errors.New("some objects were not rewritten")

// run is one rescue of one CRD.
type run struct {
	*Rescuer
	plan    Plan
	crd     *apiextensionsv1.CustomResourceDefinition
	journal Journal
	report  Report
}

func (r *run) logf(format string, args ...any) {
	r.options.Progress(Progress{Message: fmt.Sprintf(format, args...)})
}

// write reads the CRD, has edit change its spec and the journal, and writes both. It retries after a conflict. drop names
// annotations to remove.
func (r *run) write(ctx context.Context, edit func(*apiextensionsv1.CustomResourceDefinitionSpec, *Journal), drop ...string) error {
	return retryConflict(ctx, func(ctx context.Context) error {
		crd, j, err := r.read(ctx, r.plan.Name)
		if err != nil {
			return err
		}
		spec, old := *crd.Spec.DeepCopy(), j
		if j.IsZero() {
			j = newJournal(crd, r.plan.Missing)
		}
		if edit(&spec, &j); sameJSON(spec, crd.Spec) && sameJSON(old, j) {
			return nil
		}
		body, err := patchTo(crd, spec, j, drop...)
		if err != nil {
			return err
		}
		if err := r.patchCRD(ctx, crd.Name, body); err != nil {
			return fmt.Errorf("write customresourcedefinition %s: %w", crd.Name, err)
		}
		return nil
	})
}

func retryConflict(ctx context.Context, f func(context.Context) error) error {
	for {
		if err := retry(ctx, f); !apierrors.IsConflict(err) {
			return err
		}
		if err := walk.Wait(ctx, adoptionPause); err != nil {
			return err
		}
	}
}

// load reads the CRD and the journal for the next step.
func (r *run) load(ctx context.Context) error {
	return retry(ctx, func(ctx context.Context) (err error) {
		r.crd, r.journal, err = r.read(ctx, r.plan.Name)
		r.report.Added = r.journal.Added
		return err
	})
}

// begin adds the versions to the spec and to status.storedVersions. From then on, the API server refuses a spec without them.
// It also removes an old checkpoint of a migration, which may be about other objects.
func (r *run) begin(ctx context.Context) error {
	var drop []string
	if !r.plan.Resumes {
		drop = append(drop, evidence.CheckpointAnnotation)
	}
	change := func(spec *apiextensionsv1.CustomResourceDefinitionSpec, j *Journal) {
		j.change(spec, r.options.Manifest)
	}
	if err := r.write(ctx, change, drop...); err != nil {
		return err
	}
	if err := r.load(ctx); err != nil {
		return err
	}
	if len(r.journal.Added) > 0 {
		r.logf("added version %s, which is not served", strings.Join(r.journal.Added, ", "))
	}
	var all []string
	for _, v := range r.crd.Spec.Versions {
		if v.Name != probeVersion {
			all = append(all, v.Name)
		}
	}
	if hasEach(r.crd.Status.StoredVersions, all) {
		return nil
	}
	return r.setStored(ctx, all)
}

func hasEach(all, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(v string) bool { return !slices.Contains(all, v) })
}

func (r *run) setStored(ctx context.Context, versions []string) error {
	body, err := json.Marshal([]operation{{"test", "/metadata/uid", r.crd.UID}, {"replace", "/status/storedVersions", versions}})
	if err != nil {
		return err
	}
	if err := retry(ctx, func(ctx context.Context) error { return r.patchCRD(ctx, r.plan.Name, body, "status") }); err != nil {
		return fmt.Errorf("write status.storedVersions of %s: %w", r.plan.Name, err)
	}
	return nil
}

// readAll waits until the API server reads every object. Meanwhile it adds each missing version that the API server names. It
// replaces the webhook if the webhook does not convert, and the user has chosen WithoutWebhook.
func (r *run) readAll(ctx context.Context) error {
	if err := r.await(ctx, true); err != nil {
		return err
	}
	for begun := time.Now(); ; {
		_, unreachable, err := r.listAll(ctx, r.crd)
		if err == nil {
			return r.checkScope(unreachable)
		}
		answer := apierror.Of(err)
		v := answer.StoredVersion
		converterFailed := answer.Class == apierror.ConversionUnavailable || answer.Class == apierror.ConversionFailed
		switch {
		case answer.Class == apierror.UnreadableObject && v == "":
			return damaged(r.crd, answer)
		case answer.Class == apierror.UnreadableObject && !kube.HasVersion(r.crd, v):
			err = r.addVersion(ctx, v)
		case converterFailed && r.journal.Conversion == nil && !r.options.WithoutWebhook:
			return converterGone(r.crd, answer)
		case converterFailed && r.journal.Conversion == nil:
			err = r.replaceConverter(ctx)
		case apierror.IsAnswer(err) && answer.Class != apierror.Forbidden && time.Since(begun) < adoption:
			err = nil // the API server has not adopted the spec yet
		}
		if err != nil {
			return fmt.Errorf("list the objects of %s: %w", r.plan.Name, err)
		}
		if err := walk.Wait(ctx, adoptionPause); err != nil {
			return err
		}
	}
}

// checkScope refuses objects that no write reaches.
func (r *run) checkScope(u decision.Unreachable) error {
	if u.Objects == 0 {
		return nil
	}
	return &BlockedError{Blocker: decision.OtherScope(r.crd, u)}
}

func (r *run) replaceConverter(ctx context.Context) error {
	r.logf("the conversion webhook does not convert: the API server converts without it, and serves only %s", kube.StorageVersion(r.crd))
	err := r.write(ctx, func(spec *apiextensionsv1.CustomResourceDefinitionSpec, j *Journal) {
		if j.Conversion == nil && spec.Conversion != nil {
			j.replaceConverter(*spec)
		}
		j.change(spec, r.options.Manifest)
	})
	return errors.Join(err, r.load(ctx))
}

func (r *run) addVersion(ctx context.Context, version string) error {
	r.logf("objects are stored at %s as well", version)
	err := r.write(ctx, func(spec *apiextensionsv1.CustomResourceDefinitionSpec, j *Journal) {
		if !slices.Contains(j.Added, version) {
			j.Added = append(j.Added, version)
		}
		j.change(spec, r.options.Manifest)
	})
	if err != nil {
		return err
	}
	return r.begin(ctx)
}

// await waits until the API server serves the probe version, or does not serve it any more.
func (r *run) await(ctx context.Context, served bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, adoption, fmt.Errorf("the API server has not adopted the spec of %s within %v", r.plan.Name, adoption))
	defer cancel()
	resource := kube.ResourceOf(r.crd)
	resource.Version = probeVersion
	for {
		_, err := r.client.Objects(ctx, resource, 1, "")
		if apierrors.IsNotFound(err) != served {
			return nil
		}
		if err := walk.Wait(ctx, adoptionPause); err != nil {
			return err
		}
	}
}

// compare refuses a rewrite that would lose fields because no webhook converts.
func (r *run) compare(ctx context.Context) error {
	if kube.Converts(r.crd) {
		return nil
	}
	var err error
	if r.report.Changes, err = r.measure(ctx, r.crd); err != nil {
		return err
	}
	if anyLost(r.report.Changes) {
		return lossError(r.crd, r.report.Changes, kube.StorageVersion(r.crd))
	}
	return nil
}

// rewrite settles, rewrites and trims.
func (r *run) rewrite(ctx context.Context) error {
	var history decision.History
	var plan decision.Plan
	step := decision.Step{Action: decision.ActionReplan}
	for {
		if step.Action != decision.ActionWait {
			if err := r.checkReverted(ctx); err != nil {
				return err
			}
			var err error
			if plan, err = r.migrator.Plan(ctx, r.plan.Name); err != nil {
				return err
			}
		}
		report, err := r.migrator.Run(ctx, plan, func(p decision.Report) { r.options.Progress(Progress{Objects: p}) })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.report.Objects = report
		if err == nil && report.Trimmed {
			r.report.Rewritten = true
			return nil
		}
		step = decision.Next(plan, report, err, history)
		again := step.Action == decision.ActionWait || step.Action == decision.ActionReplan || step.History.Conflicts > 0 && step.History.Conflicts < conflicts
		switch {
		case !again:
			return errors.Join(r.checkReverted(ctx), cmp.Or(err, ErrIncomplete))
		case step.History.Conflicts == history.Conflicts:
			r.logf("%s", step.Message)
		}
		history = step.History
		if err := walk.Wait(ctx, min(step.After, maxPause)); err != nil {
			return err
		}
	}
}

// checkReverted returns an error if another client has removed what the rescue has added. The error names that client.
func (r *run) checkReverted(ctx context.Context) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	lost := r.journal.lost(r.crd)
	if r.journal.IsZero() {
		lost = []string{"annotation " + Annotation}
	}
	if len(lost) == 0 {
		return nil
	}
	e := reverted(r.crd, lost)
	e.Begun = !r.journal.IsZero()
	return e
}

func reverted(crd *apiextensionsv1.CustomResourceDefinition, lost []string) *BlockedError {
	owners := ownersOfVersions(crd)
	return blocked(ReasonReverted, fmt.Sprintf("another client has removed %s from %s; spec.versions belongs to %s", strings.Join(lost, " and "), crd.Name, ownersText(owners)),
		pauseClient(crd.Name))
}

func ownersText(owners []string) string {
	if len(owners) == 0 {
		return "managers that managedFields do not name"
	}
	return strings.Join(owners, ", ")
}

// restore takes the changes of the rescue to the spec back.
func (r *run) restore(ctx context.Context) error {
	return r.write(ctx, func(spec *apiextensionsv1.CustomResourceDefinitionSpec, j *Journal) {
		j.restore(spec)
		j.Restored = true
	})
}

// verify waits until the API server no longer has the added versions, and lists every object. If it can't read one, verify adds
// the versions again, so that another run can rescue it.
func (r *run) verify(ctx context.Context) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	if err := r.await(ctx, false); err != nil {
		return err
	}
	_, _, err := r.listAll(ctx, r.crd)
	answer := apierror.Of(err)
	switch answer.Class {
	case apierror.UnreadableObject, apierror.ConversionFailed, apierror.ConversionUnavailable:
	default:
		r.report.Verified = err == nil
		return err
	}
	back := r.write(ctx, func(spec *apiextensionsv1.CustomResourceDefinitionSpec, j *Journal) {
		j.Restored = false
		j.change(spec, r.options.Manifest)
	})
	e := blocked(ReasonStillUnreadable, fmt.Sprintf("a client has stored objects of %s at an old version again: %s", r.plan.Name, answer.Message),
		runAgain(r.plan.Name))
	e.Begun = true
	return errors.Join(e, back)
}

// finish gives the fields back to their owners, and removes the journal.
func (r *run) finish(ctx context.Context) error {
	return retryConflict(ctx, func(ctx context.Context) error {
		crd, j, err := r.read(ctx, r.plan.Name)
		if err != nil || j.IsZero() {
			return err
		}
		body, restored, err := j.patchOwners(crd)
		if err != nil {
			return err
		}
		if err := r.patchCRD(ctx, crd.Name, body); err != nil {
			return fmt.Errorf("restore the owners of %s: %w", crd.Name, err)
		}
		if r.report.Restored = restored; !restored {
			r.report.Others = ownersOfVersions(crd)
		}
		return nil
	})
}
