package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/ownerreference"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// pageCRDs bounds the memory of a page of CRDs: their schemas run to hundreds of kilobytes.
	pageCRDs = 50
	// lastApplied is the annotation of `kubectl apply`.
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	// admissionGroup has the configurations of webhooks, and the policies.
	admissionGroup = "admissionregistration.k8s.io"
)

// Doctor reads facts about the CRDs of one cluster. It is safe for concurrent use.
type Doctor struct {
	client  *kube.Client
	scanner *ownerreference.Scanner
}

// New returns a doctor for the cluster of cfg. Limits and retries of cfg do not apply. A nil limiter means one of its own, with
// the default limits.
func New(cfg *rest.Config, limiter *walk.Limiter) (*Doctor, error) {
	if limiter == nil {
		limiter = walk.NewLimiter(walk.Limits{})
	}
	c, err := kube.NewClient(cfg, limiter, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	scanner, err := ownerreference.NewScanner(cfg, limiter)
	return &Doctor{client: c, scanner: scanner}, err
}

// CRD reads one CRD. A CRD that does not exist is [decision.ErrNotFound].
func (d *Doctor) CRD(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	var crd *apiextensionsv1.CustomResourceDefinition
	err := quicklist.Retry(ctx, func(ctx context.Context) (err error) {
		crd, err = d.client.CRD(ctx, name)
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: %s", decision.ErrNotFound, name)
	}
	return crd, err
}

// Subjects reads the CRDs that match a label selector. An empty selector matches all.
func (d *Doctor) Subjects(ctx context.Context, selector string) ([]Subject, error) {
	fetch := func(ctx context.Context, limit int64, token string) (walk.Page[Subject], string, error) {
		var page walk.Page[Subject]
		list := &apiextensionsv1.CustomResourceDefinitionList{}
		r := d.client.Get().AbsPath("apis", apiextensionsv1.GroupName, "v1", kube.CRDs.Resource).Param("limit", strconv.FormatInt(limit, 10))
		if selector != "" {
			r.Param("labelSelector", selector)
		}
		if token != "" {
			r.Param("continue", token)
		}
		if err := kube.Do(ctx, r).Into(list); err != nil {
			return page, "", fmt.Errorf("list %s: %w", kube.CRDs, err)
		}
		for i := range list.Items {
			page.Items = append(page.Items, SubjectOf(&list.Items[i])) // which drops the schemas
		}
		return page, list.Continue, nil
	}
	var all []Subject
	for page, err := range walk.List(ctx, fetch, walk.ListOptions{PageObjects: pageCRDs, Attempts: quicklist.Attempts, Retry: quicklist.Transient}) {
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
	}
	return all, nil
}

// Observe reads what can refer to versions of CRDs: the metadata of all objects of the cluster, page by page, and the rules of
// webhooks, policies and roles. It changes nothing. progress may be nil.
func (d *Doctor) Observe(ctx context.Context, subjects []Subject, progress func(ownerreference.Scan)) (Facts, error) {
	f := Facts{Subjects: subjects, Services: map[types.NamespacedName]struct{}{}}
	owners := make([]ownerreference.Owners, len(subjects))
	for i, s := range subjects {
		owners[i] = s.Owners
	}
	finder, versions := ownerreference.NewFinder(owners), newVersionFinder(subjects)
	scan, err := d.scanner.Each(ctx, func(r schema.GroupVersionResource, o *metav1.PartialObjectMetadata) {
		finder.Visit(r, o)
		versions.visit(r, o)
		if r.Group == "" && r.Resource == services {
			f.Services[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = struct{}{}
		}
	}, progress)
	if err != nil {
		return f, err
	}
	f.Objects, f.Unread = scan.Objects, scan.Unread
	f.Applied, f.Owned = versions.applied.all(), versions.owned.all()
	d.explainTimeouts(ctx, f.Unread)
	if err := d.decideReferences(ctx, &f, finder); err != nil {
		return f, err
	}
	return f, d.readConfigurations(ctx, &f, scan.Discovered)
}

// explainTimeouts looks for the conversion webhook of each resource whose list took too long: while others were listed, it is what
// does not answer.
func (d *Doctor) explainTimeouts(ctx context.Context, unread []ownerreference.Unread) {
	for i := range unread {
		if u := &unread[i]; u.Reason == decision.ReasonTimeout {
			crd, err := d.client.CRD(ctx, u.Resource)
			u.Alone = err == nil && kube.Converts(crd)
		}
	}
}

// decideReferences lists the owners, and decides about the references that were found before. An owner that was created in between
// does not own any of these dependents.
func (d *Doctor) decideReferences(ctx context.Context, f *Facts, finder *ownerreference.Finder) error {
	for _, s := range f.Subjects {
		dependents := finder.Found[s.Owners.CRD]
		if len(dependents) == 0 {
			continue
		}
		existing, why, err := d.scanner.ReadOwners(ctx, s.Owners)
		if err != nil {
			return err
		}
		if why != nil && !f.unread(why.Resource) {
			f.Unread = append(f.Unread, *why)
		}
		for _, one := range dependents {
			for _, i := range s.Owners.Outdated(one.OwnerReferences) {
				f.References = append(f.References, Reference{
					CRD: s.Owners.CRD, Dependent: one, Index: i,
					Decision: s.Owners.Decide(one.OwnerReferences[i], one.Namespace, existing),
				})
			}
		}
	}
	return nil
}

// readConfigurations reads the rules of webhooks, policies and roles, and the APIServices, whole: their metadata do not have the
// versions that they name.
func (d *Doctor) readConfigurations(ctx context.Context, f *Facts, discovered []schema.GroupVersionResource) error {
	admission := schema.GroupVersion{Group: admissionGroup, Version: "v1"}
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	webhooks := func(kind string) func(*WebhookConfiguration) {
		return func(c *WebhookConfiguration) {
			c.Resource = kind
			f.Webhooks = append(f.Webhooks, *c)
		}
	}
	role := func(r *Role) { f.Roles = append(f.Roles, *r) }
	for _, read := range []func() error{
		func() error {
			return list(ctx, d, f, admission.WithResource("validatingwebhookconfigurations"), webhooks("validatingwebhookconfiguration"))
		},
		func() error {
			return list(ctx, d, f, admission.WithResource("mutatingwebhookconfigurations"), webhooks("mutatingwebhookconfiguration"))
		},
		func() error { return d.readPolicies(ctx, f, discovered) },
		func() error { return list(ctx, d, f, rbac.WithResource("clusterroles"), role) },
		func() error { return list(ctx, d, f, rbac.WithResource("roles"), role) },
		func() error { return d.readHelm(ctx, f) },
		func() error {
			apiServices := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
			return list(ctx, d, f, apiServices, func(a *APIService) { f.APIServices = append(f.APIServices, *a) })
		},
	} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// readHelm reads the manifests that Helm keeps of the deployed releases.
func (d *Doctor) readHelm(ctx context.Context, f *Facts) error {
	finder := &helmFinder{subjects: f.Subjects}
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	err := listSelected(ctx, d, f, selection{secrets, helmReleases, pageHelm}, finder.visit)
	f.Helm = finder.found
	return err
}

// policyKinds are the resources of admission policies, with their names in commands.
var policyKinds = map[schema.GroupResource]string{
	{Group: admissionGroup, Resource: "validatingadmissionpolicies"}:       "validatingadmissionpolicy",
	{Group: admissionGroup, Resource: "validatingadmissionpolicybindings"}: "validatingadmissionpolicybinding",
	{Group: admissionGroup, Resource: "mutatingadmissionpolicies"}:         "mutatingadmissionpolicy",
	{Group: admissionGroup, Resource: "mutatingadmissionpolicybindings"}:   "mutatingadmissionpolicybinding",
}

// readPolicies reads the admission policies and their bindings. Which of them the API server has, and at which version, depends on
// its release.
func (d *Doctor) readPolicies(ctx context.Context, f *Facts, discovered []schema.GroupVersionResource) error {
	for _, r := range discovered {
		kind, is := policyKinds[r.GroupResource()]
		if !is {
			continue
		}
		if err := list(ctx, d, f, r, func(p *AdmissionPolicy) {
			p.Resource = kind
			f.Policies = append(f.Policies, *p)
		}); err != nil {
			return err
		}
	}
	return nil
}

// selection is what is read of a resource, and how much at once.
type selection struct {
	schema.GroupVersionResource
	labels      string
	pageObjects int64
}

// list reads all objects of a resource. A list that the API server refuses is in f.Unread.
func list[T any](ctx context.Context, d *Doctor, f *Facts, r schema.GroupVersionResource, take func(*T)) error {
	return listSelected(ctx, d, f, selection{GroupVersionResource: r}, take)
}

func listSelected[T any](ctx context.Context, d *Doctor, f *Facts, of selection, take func(*T)) error {
	r := of.GroupVersionResource
	if f.unread(r.GroupResource().String()) {
		return nil
	}
	fetch := func(ctx context.Context, limit int64, token string) (walk.Page[T], string, error) {
		req := d.client.Get().AbsPath(kube.CollectionPath(r, "")...).Param("limit", strconv.FormatInt(limit, 10)).SetHeader("Accept", runtime.ContentTypeJSON)
		if token != "" {
			req.Param("continue", token)
		}
		if of.labels != "" {
			req.Param("labelSelector", of.labels)
		}
		var page walk.Page[T]
		text, err := kube.Body(kube.Do(ctx, req))
		if err != nil {
			return page, "", fmt.Errorf("list %s: %w", r.GroupResource(), err)
		}
		var answer struct {
			metav1.ListMeta `json:"metadata"`

			Items []T `json:"items"`
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			return page, "", fmt.Errorf("list %s: %w", r.GroupResource(), err)
		}
		page.Items = answer.Items
		return page, answer.Continue, nil
	}
	for page, err := range walk.List(ctx, fetch, walk.ListOptions{PageObjects: of.pageObjects, Attempts: quicklist.Attempts, Retry: ownerreference.Retry}) {
		switch {
		case apierror.IsAnswer(err) && ctx.Err() == nil:
			f.Unread = append(f.Unread, ownerreference.UnreadOf(r, err))
			return nil
		case err != nil:
			return err
		}
		for i := range page.Items {
			take(&page.Items[i])
		}
	}
	return nil
}

// versionFinder counts objects of the subjects by the versions that their metadata name.
type versionFinder struct {
	subjects       map[schema.GroupResource]Subject
	applied, owned versionUses
}

func newVersionFinder(subjects []Subject) *versionFinder {
	f := &versionFinder{map[schema.GroupResource]Subject{}, versionUses{}, versionUses{}}
	for _, s := range subjects {
		f.subjects[s.Owners.Resource.GroupResource()] = s
	}
	return f
}

func (f *versionFinder) visit(r schema.GroupVersionResource, o *metav1.PartialObjectMetadata) {
	s, ok := f.subjects[r.GroupResource()]
	if !ok {
		return
	}
	if version := appliedAt(r.Group, o); version != "" && !s.countsAsServed(version) {
		f.applied.add(s, version, o)
	}
	for _, n := range s.Narrow {
		apiVersion := schema.GroupVersion{Group: r.Group, Version: n.Version}.String()
		if slices.ContainsFunc(o.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.APIVersion == apiVersion }) {
			f.owned.add(s, n.Version, o)
		}
	}
}

// appliedAt is the version in the annotation of kubectl apply; empty if the object was not applied, or if another client wrote the
// annotation.
func appliedAt(group string, o *metav1.PartialObjectMetadata) string {
	var manifest struct {
		APIVersion string `json:"apiVersion"`
	}
	if json.Unmarshal([]byte(o.Annotations[lastApplied]), &manifest) != nil {
		return ""
	}
	if gv, err := schema.ParseGroupVersion(manifest.APIVersion); err == nil && gv.Group == group {
		return gv.Version
	}
	return ""
}

// versionUses are by CRD and version.
type versionUses map[[2]string]*VersionUse

func (u versionUses) add(s Subject, version string, o *metav1.PartialObjectMetadata) {
	key := [2]string{s.Owners.CRD, version}
	if u[key] == nil {
		u[key] = &VersionUse{CRD: s.Owners.CRD, Version: version, Example: walk.Key(o)}
	}
	u[key].Objects++
}

func (u versionUses) all() []VersionUse {
	var all []VersionUse
	for _, one := range u {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(x, y VersionUse) int { return strings.Compare(x.CRD+" "+x.Version, y.CRD+" "+y.Version) })
	return all
}
