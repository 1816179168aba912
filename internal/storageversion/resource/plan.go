package resource

import (
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/quote"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

// Server is an API server as its identity lease shows it.
type Server = settle.Server

// Facts are what is observed of one resource.
type Facts struct {
	Resource Resource
	// CRD is nil unless the resource is a custom one.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Objects is nil if the API server does not say how many there are.
	Objects *int64
	// ListError is the answer to a list of one object; nil if it was listed, or not tried.
	ListError error
	// Denied are missing permissions of User.
	Denied []kube.Grant
	User   string
	// Servers are all API servers, and Stale those whose lease is stale.
	Servers, Stale []Server
	Now            time.Time
}

// Plan is what a run would do with one resource.
type Plan struct {
	Resource Resource
	// State is Clean for a resource without objects. A resource with objects is Ready, since no API shows whether
	// they have to be written.
	State decision.State
	// Objects is nil if they were not counted.
	Objects  *int64
	Blockers []godwit.Finding
	// Encrypted is the key in etcd of an object whose encryption key the API server lacks; empty if it is not known.
	Encrypted string
	// crd of the resource, or nil.
	crd *apiextensionsv1.CustomResourceDefinition
}

// Refusals are the blockers that do not end by waiting.
func (p Plan) Refusals() []godwit.Finding {
	var all []godwit.Finding
	for _, b := range p.Blockers {
		if b.Reason != decision.ReasonServerLeaseStale {
			all = append(all, b)
		}
	}
	return all
}

// PlanFor decides. It is pure.
func PlanFor(f Facts) Plan {
	p := Plan{Resource: f.Resource, Objects: f.Objects, crd: f.CRD}
	switch {
	case refusal(f) != nil:
		p.Blockers = []godwit.Finding{*refusal(f)}
	case len(f.Denied) > 0:
		for _, g := range f.Denied {
			p.Blockers = append(p.Blockers, godwit.Finding{
				Reason:  decision.ReasonForbidden,
				Message: fmt.Sprintf("%s may not %s", f.User, g), Fix: g.Fix(f.User),
			})
		}
	case f.ListError != nil:
		p.State, p.Blockers = decision.StateUnknown, []godwit.Finding{unlisted(f)}
		if answer := apierror.Of(f.ListError); answer.Class == apierror.KeyMissing {
			p.State, p.Encrypted = decision.Blocked, answer.Key
		}
		return p
	}
	p.Blockers = append(p.Blockers, decision.StaleLeases(f.Stale, f.Servers, f.Now)...)
	switch {
	case len(p.Blockers) > 0:
		p.State = decision.Blocked
	case f.Objects != nil && *f.Objects == 0:
		p.State = decision.Clean
	default:
		p.State = decision.Ready
	}
	return p
}

// refusal is why the resource can't be rewritten at all.
func refusal(f Facts) *godwit.Finding {
	r := f.Resource
	name := r.Name()
	switch {
	case r.Aggregated != "":
		return &godwit.Finding{
			Reason:  ReasonAggregated,
			Message: fmt.Sprintf("%s is served by another API server, service %s, which keeps its objects elsewhere", name, r.Aggregated),
			Fix:     seeDocumentation(strings.Trim(r.Version+"."+r.Group, ".")),
		}
	case !r.Stored:
		return &godwit.Finding{
			Reason:  ReasonNotInEtcd,
			Message: fmt.Sprintf("%s is not in etcd: the API server makes it up for each request", name),
			Fix:     leaveOut(),
		}
	case r.expires():
		return &godwit.Finding{
			Reason:  ReasonExpires,
			Message: fmt.Sprintf("%s expire by themselves, an hour after their last write by default, and a write would make them live longer", name),
			Fix:     keepKey(),
		}
	case !r.writable():
		return &godwit.Finding{
			Reason:  ReasonNotWritable,
			Message: fmt.Sprintf("%s can't be listed and patched: the API server allows %s", name, strings.Join(r.verbs, ", ")),
			Fix:     leaveOut(),
		}
	}
	return customRefusal(f)
}

// customRefusal refuses custom resources with old stored versions: they may only be written at the storage version of their CRD.
func customRefusal(f Facts) *godwit.Finding {
	if f.CRD == nil || kube.Trimmed(f.CRD) && kube.Serves(f.CRD, kube.StorageVersion(f.CRD)) {
		return nil
	}
	return &godwit.Finding{
		Reason: ReasonOldStoredVersions,
		Message: fmt.Sprintf("%s has objects at old versions, by status.storedVersions: %s", f.CRD.Name,
			strings.Join(f.CRD.Status.StoredVersions, ", ")),
		Fix: migrateCRD(f.CRD.Name),
	}
}

// unlisted classifies the answer to a list.
func unlisted(f Facts) godwit.Finding {
	answer, name := apierror.Of(f.ListError), f.Resource.Name()
	b := godwit.Finding{
		Reason:  decision.ReasonListRefused,
		Message: fmt.Sprintf("the list of %s is refused: %s", name, quote.Line(answer.Message)),
	}
	switch {
	case quicklist.TimedOut(f.ListError):
		b.Reason, b.Message = decision.ReasonTimeout, fmt.Sprintf("the API server did not list one of %s within %v", name, quicklist.Limit)
	case answer.Class == apierror.Unauthorized:
		return decision.Unauthorized()
	case answer.Class == apierror.Throttled:
		b.Reason = decision.ReasonThrottled
	case answer.Class == apierror.ServerError:
		b.Reason = decision.ReasonServerError
	case answer.Class == apierror.KeyMissing:
		return decision.KeyMissing(f.Resource.GroupResource(), answer)
	case answer.Class == apierror.UnreadableObject:
		b.Reason = ReasonUnreadableObjects
		b.Message = fmt.Sprintf("the API server can't read objects of %s from etcd: %s", name, quote.Line(answer.Message))
		b.Fix = distributeKey()
		return b
	}
	b.Fix = decision.FixList(b.Reason, f.Resource.GroupVersionResource).Then("plan again")
	return b
}

// NotFound is the refusal of an argument that names no resource.
func (c Catalog) NotFound(argument string) godwit.Finding {
	if resource, sub, ok := strings.Cut(argument, "/"); ok {
		return godwit.Finding{
			Reason:  ReasonNotInEtcd,
			Message: fmt.Sprintf("%s is the subresource %s, which is stored in %s", argument, sub, resource),
			Fix:     nameParent(resource),
		}
	}
	_, named := schema.ParseResourceArg(argument)
	for gv, err := range c.failed {
		switch service := c.services[gv].service; {
		case gv.Group != named.Group:
		case service != "":
			return *refusal(Facts{Resource: Resource{GroupVersionResource: gv.WithResource(named.Resource), Aggregated: service}})
		default:
			return godwit.Finding{
				Reason:  ReasonDiscoveryFailed,
				Message: fmt.Sprintf("the API server does not say which resources %s has: %s", gv, quote.Line(err.Error())),
				Fix:     seeServer(gv.Version + "." + gv.Group),
			}
		}
	}
	return godwit.Finding{
		Reason:  ReasonResourceNotFound,
		Message: fmt.Sprintf("the API server serves no resource %s", argument),
		Fix:     listResources(),
	}
}
