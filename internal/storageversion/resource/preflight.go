package resource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/placeholder"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/listing"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// sampledPages of metadata are read in search of namespaces.
	sampledPages = 4
	// sampledNamespaces are tried, with one object each. A run shows the others.
	sampledNamespaces = 20
	// preflightLimit bounds the dry runs of one resource: each may meet a webhook that does not answer.
	preflightLimit = 30 * time.Second
)

var errPreflightOver = errors.New("the preflight took too long")

// Preflight sends the write of one object of each namespace as a dry run, and returns what admission denies. It can't find out
// everything, such as the answer of a webhook without dry runs: only the run shows that.
func (r *Rewriter) Preflight(ctx context.Context, p Plan) ([]godwit.Finding, error) {
	limited, cancel := kube.WithLimit(ctx, preflightLimit, errPreflightOver)
	defer cancel()
	sample, err := r.sample(limited, p.Resource)
	if err == nil && len(sample.Items) > 0 {
		var report walk.Report
		report, err = storageversion.Objects{
			Client: r.client, Limiter: r.options.Limiter, Resource: p.Resource.GroupVersionResource, CRD: p.crd, DryRun: true,
			List: listing.Lister(func(context.Context, schema.GroupVersionResource, int64, string) (*metav1.PartialObjectMetadataList, error) {
				return sample, nil
			}),
			OnPage: func(context.Context, walk.Report) error { return nil },
		}.Rewrite(limited)
		if denials := r.denials(ctx, p.Resource, report.Failures, len(sample.Items)); len(denials) > 0 {
			return denials, nil
		}
	}
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(limited), errPreflightOver) {
		return nil, nil
	}
	return nil, err
}

// sample lists the first object of each of the first namespaces.
func (r *Rewriter) sample(ctx context.Context, resource Resource) (*metav1.PartialObjectMetadataList, error) {
	sample := &metav1.PartialObjectMetadataList{}
	seen := map[string]bool{}
	token := ""
	for range sampledPages {
		list, err := r.list(ctx, resource.GroupVersionResource, walk.DefaultPageObjects, token)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource.Name(), err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; !seen[o.Namespace] && len(sample.Items) < sampledNamespaces {
				seen[o.Namespace] = true
				sample.Items = append(sample.Items, *o)
			}
		}
		sample.ResourceVersion = list.ResourceVersion
		if token = list.Continue; token == "" || len(sample.Items) == sampledNamespaces {
			break
		}
	}
	return sample, nil
}

// denials makes one blocker of all failures with the same cause: a webhook, a policy, or the validation.
func (r *Rewriter) denials(ctx context.Context, resource Resource, failures []godwit.Failure, tried int) []godwit.Finding {
	var order []apierror.Origin
	by := map[apierror.Origin][]godwit.Failure{}
	for _, f := range failures {
		answer := apierror.Of(f.Err)
		if refused[f.Reason] == nil || answer.Class == apierror.NoDryRun {
			continue
		}
		if by[answer.Origin] == nil {
			order = append(order, answer.Origin)
		}
		by[answer.Origin] = append(by[answer.Origin], f)
	}
	if len(order) == 0 {
		return nil
	}
	user := kube.UserName(ctx, r.client)
	var all []godwit.Finding
	for _, origin := range order {
		all = append(all, denial(resource, origin, by[origin], tried, user))
	}
	return all
}

// refused maps the reason of an object's failure to the reason of the resource's blocker.
var refused = map[*godwit.Reason]*godwit.Reason{
	decision.ReasonAdmissionDenied:    ReasonAdmissionDenied,
	decision.ReasonWebhookUnavailable: ReasonWebhookUnavailable,
	decision.ReasonObjectInvalid:      ReasonObjectInvalid,
}

// denial is the blocker of failures that have one origin.
func denial(resource Resource, origin apierror.Origin, failures []godwit.Failure, tried int, user string) godwit.Finding {
	first := failures[0]
	f := godwit.Finding{
		Reason: refused[first.Reason],
		Message: fmt.Sprintf("the write of %s %s is refused, as a dry run shows (%d of %d tried): %s",
			resource.Name(), strings.TrimPrefix(first.Namespace+"/"+first.Name, "/"), len(failures), tried, quote.Line(first.Message)),
		Fix: decision.EditObject(godwit.Object{Resource: resource.Name(), Namespace: first.Namespace, Name: first.Name}),
	}
	switch user = cmp.Or(user, placeholder.User); {
	case f.Reason == ReasonWebhookUnavailable:
		f.Fix = bringUp(user, origin, resource)
	case origin.Kind != "":
		f.Fix = decision.ExemptFrom(user, origin)
	}
	f.Fix = f.Fix.Or(keepForm())
	return f
}
