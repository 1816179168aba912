package storageversion

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
)

// Preflight tries the policy's write before a run, without carrying it out. Run of package
// preflight is one.
type Preflight func(context.Context, PreflightTarget) (*PreflightReport, error)

// PreflightTarget is what a [Migrator] lends to a [Preflight].
type PreflightTarget struct {
	// Facts are what was observed before. The CRD is served, and the caller has the
	// permissions on its objects that a run needs.
	Facts  Facts
	Policy Policy
	// Client sends requests, paced like the run's own.
	Client *kube.Client
	// PageObjects is the size of a page; 0 means walk.DefaultPageObjects.
	PageObjects int64
	// DryRun sends a write of one object without carrying it out, and returns the whole
	// object as it would be after it.
	DryRun func(context.Context, Write, *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// PreflightReport is what a [Preflight] has found.
type PreflightReport struct {
	// Denials keep a run from starting, unless the policy accepts them: what the API server
	// refused of one object it refuses of that object in a run.
	Denials []godwit.Blocker
	// Warnings do not keep a run from starting.
	Warnings []godwit.Warning
	Summary  *PreflightSummary
}

// PreflightSummary counts what a preflight has tried.
type PreflightSummary struct {
	Write Write `json:"write"`
	// Tried is the number of objects, one of each namespace: the sum of the next four.
	Tried    int `json:"tried"`
	Accepted int `json:"accepted"`
	Changed  int `json:"changed"`
	Refused  int `json:"refused"`
	// Inconclusive counts the objects for which the API server's answer says nothing about
	// the write.
	Inconclusive int `json:"inconclusive"`
	// NamespacesLeftOut is the number of namespaces that have objects and were not tried.
	NamespacesLeftOut int `json:"namespacesLeftOut"`
	// AllSeen means that no other namespaces have objects.
	AllSeen bool `json:"allSeen"`
}

// preflight tries the write, unless another blocker says that it can't be sent at all.
func (m *Migrator) preflight(ctx context.Context, f *Facts) error {
	if m.options.Preflight == nil || !m.canTry(*f) {
		return nil
	}
	var err error
	if f.Preflight, err = m.options.Preflight(ctx, m.target(*f)); err != nil {
		return fmt.Errorf("preflight the write %s of %s: %w", m.options.Write.orDefault(), f.CRD.Name, err)
	}
	return nil
}

// canTry reports whether the write can be sent. A dry run needs the permissions of the write
// itself.
func (m *Migrator) canTry(f Facts) bool {
	resource := kube.ResourceOf(f.CRD)
	switch {
	case f.Unlisted != nil, f.CRD.DeletionTimestamp != nil:
		return false
	case !kube.Established(f.CRD), !kube.Serves(f.CRD, resource.Version), f.lacks(resource.GroupResource()):
		return false
	}
	return m.options.Write.orDefault().Subresource() == "" || kube.HasStatus(f.CRD)
}

// Target is what a [Preflight] needs to try writes of the objects of one CRD.
func (m *Migrator) Target(ctx context.Context, crd string) (PreflightTarget, error) {
	c, err := m.client.CRD(ctx, crd)
	if err != nil {
		return PreflightTarget{}, notFound(crd, err)
	}
	return m.target(Facts{CRD: c}), nil
}

func (m *Migrator) target(f Facts) PreflightTarget {
	t := PreflightTarget{Facts: f, Policy: m.options.Policy, Client: m.client.Client, PageObjects: m.options.PageObjects}
	t.Policy.Write = t.Policy.Write.orDefault()
	t.DryRun = func(ctx context.Context, w Write, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		r := kube.ResourceOf(f.CRD)
		if w == WriteUpdate {
			body, err := o.MarshalJSON()
			if err != nil {
				return nil, err
			}
			return dryRun(ctx, m.client.PutRequest(r, o, body))
		}
		p, err := w.patch(r.GroupVersion().WithKind(f.CRD.Spec.Names.Kind), o)
		if err != nil {
			return nil, err
		}
		return dryRun(ctx, m.client.PatchRequest(r, o, p))
	}
	return t
}

// dryRun sends a write that is not carried out.
func dryRun(ctx context.Context, req *rest.Request) (*unstructured.Unstructured, error) {
	text, err := kube.Body(kube.Do(ctx, req.SetHeader("Accept", runtime.ContentTypeJSON).
		Param("fieldValidation", metav1.FieldValidationIgnore).
		Param("dryRun", metav1.DryRunAll)))
	if err != nil {
		return nil, err
	}
	return kube.Decode(text)
}

// lacks reports whether a permission on the objects themselves is missing.
func (f Facts) lacks(objects schema.GroupResource) bool {
	for _, g := range f.Denied {
		resource, _, _ := strings.Cut(g.Resource.Resource, "/")
		if g.Resource.Group == objects.Group && resource == objects.Resource {
			return true
		}
	}
	return false
}

// DenialsAccepted reports whether a run starts although the API server refuses some of its
// writes: by the policy, or by an earlier run, which left a checkpoint and may have met the
// denials on its way. A user who resumes it must not be stopped half-way by what did not stop
// the start.
func (f Facts) DenialsAccepted(p Policy) bool { return p.AcceptDenials || f.Checkpoint.holds(f.CRD, p) }

// Done reports whether a run that resumes from the checkpoint would not write the object. An
// object whose resourceVersion can't be compared is not done.
func (f Facts) Done(p Policy, o *metav1.PartialObjectMetadata) bool {
	return f.Checkpoint.done(f.CRD, p, o)
}
