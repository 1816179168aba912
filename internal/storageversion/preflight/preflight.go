package preflight

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

var errTimeOver = fmt.Errorf("the preflight ended after %v", timeLimit)

// Run tries the policy's write on one object of each namespace. It is a
// [storageversion.Preflight].
func Run(ctx context.Context, t storageversion.PreflightTarget) (*decision.PreflightReport, error) {
	r, err := observe(ctx, t, (*result).hasProblems)
	if err != nil {
		return nil, err
	}
	r.crdWrites = []crdWrite{{"its checkpoint, an annotation", tryCRD(ctx, t.TryCheckpoint)}, {"its status", tryCRD(ctx, t.TryTrim)}}
	return report(ctx, t, r), nil
}

func report(ctx context.Context, t storageversion.PreflightTarget, r *result) *decision.PreflightReport {
	user := t.Facts.User
	if user == "" && (r.hasProblems() || r.crdRefused()) {
		user = kube.UserName(ctx, t.Client)
	}
	all := reportFor(r, t.Facts, t.Policy, user)
	all.RoundTrips = r.roundTrips
	return all
}

// Changes is [Run] for a program, which counts and retries the objects that the API server refuses. It reports only what is lost or
// changed by a write that the API server accepts. The error of the API server on an object is an error: the next attempt may show that
// the object is changed.
func Changes(ctx context.Context, t storageversion.PreflightTarget) (*decision.PreflightReport, error) {
	r, err := observe(ctx, t, (*result).hasChanges)
	if err != nil {
		return nil, err
	}
	for _, a := range r.attempts {
		if o := a.outcome(); o.effect == inconclusive && a.refusal != "" && !o.forbidden && o.by.Name == "" {
			return nil, fmt.Errorf("try it on %s: %s", a.key(), quote.Line(o.words))
		}
	}
	all := report(ctx, t, r)
	return &decision.PreflightReport{Changes: all.Changes, RoundTrips: all.RoundTrips}, nil
}

// observe reads what [reportFor] decides on. It reads what fixes name if the result needs them.
func observe(ctx context.Context, t storageversion.PreflightTarget, needsFixes func(*result) bool) (*result, error) {
	r := &result{write: t.Policy.Write}
	limited, cancel := kube.WithLimit(ctx, timeLimit, errTimeOver)
	defer cancel()
	samples, err := sample(limited, t)
	if err == nil {
		r.namespaces, r.allSeen = samples.namespaces(t.Facts.CRD), samples.allSeen
		r.attempts = tryAll(limited, t, r.write, samples.objects)
		r.roundTrips = t.RoundTrips(limited, samples.objects)
		if needsFixes(r) {
			r.statusAttempts = tryStatus(limited, t, r)
			r.configs, r.configsUnread = admissionConfigs(limited, t.Client, kube.ResourceOf(t.Facts.CRD), r.write)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r.timedOut = limited.Err() != nil
	switch {
	case err == nil:
	case apierror.IsAnswer(err), r.timedOut:
		r.unlisted = err.Error()
	default:
		return nil, err
	}
	return r, nil
}

// tryCRD tries one write of the CRD.
func tryCRD(ctx context.Context, write func(context.Context) error) attempt {
	ctx, cancel := kube.WithAnswerLimit(ctx, attemptLimit, errAttemptOver)
	defer cancel()
	if err := write(ctx); err != nil {
		return attempt{}.failed(ctx, err)
	}
	return attempt{}
}

// tryStatus tries to write the status of the first object of each problem that admission causes.
// Webhooks of the object itself are usually not called for such a write.
func tryStatus(ctx context.Context, t storageversion.PreflightTarget, r *result) []attempt {
	if !r.offersStatus(t.Facts.CRD) {
		return nil
	}
	var objects []*metav1.PartialObjectMetadata
	for _, p := range r.problems() {
		if p.effect == denies || p.effect == unreachable || p.effect == changes {
			first := p.attempts[0]
			objects = append(objects, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: first.namespace, Name: first.name}})
		}
	}
	return tryAll(ctx, t, decision.WriteStatusPatch, objects)
}

// StatusPatchPasses reports whether a dry run of [decision.WriteStatusPatch] goes through
// for the objects that a run of p failed on, of which it tries the first ones. It is false if the policy writes to /status
// already, or if the storage version has no /status. An object that was deleted since, or
// that the caller may not write, does not pass.
func StatusPatchPasses(ctx context.Context, m *storageversion.Migrator, p decision.Plan, failed []godwit.Failure) (bool, error) {
	if len(failed) == 0 || slices.ContainsFunc(failed, dryRunProvesNothing) {
		return false, nil
	}
	t, err := m.Target(ctx, p.Name)
	if err != nil {
		return false, err
	}
	if t.Policy.Write.Subresource() != "" || t.Facts.CRD.UID != p.UID || !kube.HasStatus(t.Facts.CRD) {
		return false, nil
	}
	tried := failed[:min(len(failed), walk.DefaultFailures)]
	objects := make([]*metav1.PartialObjectMetadata, len(tried))
	for i, f := range tried {
		objects[i] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: f.Name}}
	}
	limited, cancel := kube.WithLimit(ctx, timeLimit, errTimeOver)
	defer cancel()
	attempts := tryAll(limited, t, decision.WriteStatusPatch, objects)
	passed := !slices.ContainsFunc(attempts, func(a attempt) bool { return a.outcome().effect != passes })
	return passed && len(attempts) == len(objects), context.Cause(ctx)
}

// dryRunProvesNothing reports whether etcd or the API server itself failed to store an object: a dry run does not reach etcd.
func dryRunProvesNothing(f godwit.Failure) bool {
	return slices.Contains([]*godwit.Reason{
		decision.ReasonServerError, decision.ReasonTimeout, decision.ReasonThrottled, decision.ReasonUnanswered,
		decision.ReasonObjectTooLarge, decision.ReasonEtcdFull, decision.ReasonUnauthorized,
	}, f.Reason)
}

// OptionalPermissions lists the permissions without which [Run] finds less, beside those that
// a run needs.
func OptionalPermissions() []decision.Grant {
	grants := []decision.Grant{{Verb: "list", Resource: schema.GroupResource{Resource: "namespaces"}}}
	for _, k := range configKinds {
		grants = append(grants, decision.Grant{Verb: "list", Resource: schema.GroupResource{Group: admissionregistrationv1.GroupName, Resource: k.resource}})
	}
	return grants
}
