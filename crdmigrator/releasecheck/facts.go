package releasecheck

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quicklist"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
	"github.com/godwit-dev/godwit/walk"
)

// Options tune a [Checker]. The zero value works.
type Options struct {
	// Limiter paces every request; nil means one of its own, with the default limits.
	Limiter *walk.Limiter
	// PageObjects is the size of a page; 0 means walk.DefaultPageObjects.
	PageObjects int64
}

// Checker checks CRDs against one cluster. It is safe for concurrent use.
type Checker struct {
	options Options
	client  *kube.Client
}

// New returns a checker of the cluster of cfg. Limits and retries of cfg do not apply: the
// limiter paces, and the checker retries.
func New(cfg *rest.Config, o Options) (*Checker, error) {
	if o.Limiter == nil {
		o.Limiter = walk.NewLimiter(walk.Limits{})
	}
	c, err := kube.NewClient(cfg, o.Limiter, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	return &Checker{options: o, client: c}, nil
}

// Check reads the facts about one CRD of the next release, and decides. It changes nothing.
func (m *Checker) Check(ctx context.Context, next *apiextensionsv1.CustomResourceDefinition) (Check, error) {
	f, err := m.Observe(ctx, next)
	if err != nil {
		return Check{}, err
	}
	return For(f), nil
}

// Observe reads the facts about one CRD of the next release: the live CRD, and the API server's
// answer to a dry run. If the release removes a version, and is not refused, Observe also reads
// the metadata of every object, page by page.
func (m *Checker) Observe(ctx context.Context, next *apiextensionsv1.CustomResourceDefinition) (Facts, error) {
	return m.ObserveFile(ctx, next, nil)
}

// ObserveFile is [Checker.Observe] with the manifest of the CRD as the file has it. A CRD in Go can't say that a field is false or
// empty on purpose, which changes the field of the live CRD.
func (m *Checker) ObserveFile(ctx context.Context, next *apiextensionsv1.CustomResourceDefinition, file map[string]any) (Facts, error) {
	f := Facts{Next: next}
	live, err := m.client.CRD(ctx, next.Name)
	switch {
	case apierrors.IsForbidden(err):
		f.Denied = []decision.Grant{{Verb: "get", Resource: kube.CRDs, Name: next.Name}}
		f.User = kube.UserName(ctx, m.client)
		return f, nil
	case err == nil:
		f.Live = live
	case !apierrors.IsNotFound(err):
		return f, fmt.Errorf("read customresourcedefinition %s: %w", next.Name, err)
	}
	if f.DryRun, err = m.dryRun(ctx, f); err != nil {
		return f, fmt.Errorf("dry-run %s: %w", next.Name, err)
	}
	if f.Live != nil && f.DryRun.Accepted {
		if err := m.tryWays(ctx, &f, file); err != nil {
			return f, fmt.Errorf("dry-run %s: %w", next.Name, err)
		}
	}
	if f.Live == nil || For(f).Result == Refused {
		return f, nil
	}
	unkept := f.unkept()
	if err := m.readObjects(ctx, &f, len(unkept) > 0); err != nil || len(f.Denied) > 0 || f.Unread != nil {
		return f, err
	}
	return f, m.readValues(ctx, &f, unkept)
}

// dryRun sends the CRD as a dry run, after an access review: a 403 alone does not
// show whether a permission is missing or a policy refuses the CRD.
func (m *Checker) dryRun(ctx context.Context, f Facts) (DryRun, error) {
	need := decision.Grant{Verb: "create", Resource: kube.CRDs}
	if f.Live != nil {
		need = decision.Grant{Verb: "update", Resource: kube.CRDs, Name: f.Live.Name}
	}
	ok, err := kube.Allowed(ctx, m.client, need)
	if err != nil {
		return DryRun{}, err
	}
	if !ok {
		return DryRun{Skipped: fmt.Sprintf("%s may not %s", cmp.Or(kube.UserName(ctx, m.client), "the current user"), need)}, nil
	}
	return dryRunOf(dryRun(ctx, m.client, replaced(f)))
}

// replaced is the live CRD with the spec of the next release. It keeps the labels
// and annotations of other clients, as the tools that install a release do.
func replaced(f Facts) *apiextensionsv1.CustomResourceDefinition {
	if f.Live == nil {
		crd := f.Next.DeepCopy()
		crd.ResourceVersion, crd.UID = "", ""
		crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		return crd
	}
	crd := f.Live.DeepCopy()
	crd.Spec = *f.Next.Spec.DeepCopy()
	crd.Labels, crd.Annotations = overlaid(crd.Labels, f.Next.Labels), overlaid(crd.Annotations, f.Next.Annotations)
	return crd
}

func overlaid(under, over map[string]string) map[string]string {
	if under == nil {
		return over
	}
	maps.Copy(under, over)
	return under
}

// dryRunOf classifies the answer. It is not a refusal if a webhook does not support dry
// runs, if a server or a webhook fails, or if the CRD changed meanwhile.
func dryRunOf(err error) (DryRun, error) {
	if err == nil {
		return DryRun{Accepted: true}, nil
	}
	if !apierror.IsAnswer(err) {
		return DryRun{}, err
	}
	switch apierror.Of(err).Class {
	case apierror.NoDryRun, apierror.WebhookUnavailable, apierror.ConversionUnavailable, apierror.ConversionFailed,
		apierror.Throttled, apierror.Timeout, apierror.ServerError, apierror.Conflict, apierror.NotFound:
		return DryRun{Skipped: err.Error()}, nil
	}
	return DryRun{Refusal: cmp.Or(err.Error(), apierror.Message(err))}, nil
}

// readObjects counts the objects, and the objects whose managedFields name a removed
// version, if the result depends on them. If only their values are read later, it finds out whether they can be listed.
func (m *Checker) readObjects(ctx context.Context, f *Facts, values bool) error {
	removed := f.removed()
	counts := len(removed) > 0 || len(kube.ServedVersions(f.Next)) == 0
	if !counts && !values {
		return nil
	}
	resource := kube.ResourceOf(f.Live)
	if !kube.Serves(f.Live, resource.Version) {
		others := kube.ServedVersions(f.Live)
		if len(others) == 0 {
			f.Unread = decision.Unlisted(f.Live, nil)
			return nil
		}
		resource.Version = others[0]
	}
	need := decision.Grant{Verb: "list", Resource: resource.GroupResource()}
	ok, err := kube.Allowed(ctx, m.client, need)
	if err != nil {
		return err
	}
	if !ok {
		f.Denied, f.User = []decision.Grant{need}, kube.UserName(ctx, m.client)
		return nil
	}
	// List one object first: a list of all would wait much longer for a conversion webhook.
	err = quicklist.Retry(ctx, func(ctx context.Context) error {
		_, err := m.client.FirstObject(ctx, resource, quicklist.Limit)
		return err
	})
	if err == nil && counts {
		err = m.scan(ctx, f, resource, removed)
	}
	if apierror.IsAnswer(err) || errors.Is(err, quicklist.ErrOver) {
		f.Unread = decision.Unlisted(f.Live, err)
		return nil
	}
	return err
}

func (m *Checker) scan(ctx context.Context, f *Facts, resource schema.GroupVersionResource, removed []string) error {
	var objects, stale int64
	var example string
	named := map[string]bool{}
	for page, err := range m.pages(ctx, resource) {
		if err != nil {
			return err
		}
		for _, o := range page.Items {
			objects++
			versions := namedBy(o.ManagedFields, resource.Group, removed)
			if len(versions) == 0 {
				continue
			}
			for _, v := range versions {
				named[v] = true
			}
			if stale++; stale == 1 {
				example = strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
			}
		}
	}
	f.Objects, f.Stale, f.StaleExample = &objects, stale, example
	f.StaleVersions = slices.DeleteFunc(removed, func(v string) bool { return !named[v] })
	return nil
}

// readValues compares every object, as clients see it at the version at which it may be stored, with the same object without
// the fields that the next release lacks.
func (m *Checker) readValues(ctx context.Context, f *Facts, unkept []unkept) error {
	if len(unkept) == 0 || f.empty() {
		return nil
	}
	f.Values = &Values{}
	for _, u := range unkept {
		if !kube.Serves(f.Live, u.version) {
			f.Values.Uncompared = append(f.Values.Uncompared, u.version)
			continue
		}
		resource := kube.ResourceOf(f.Live)
		resource.Version = u.version
		f.Values.Compared = 0
		var losses values.Losses
		err := m.eachObject(ctx, resource, func(o *unstructured.Unstructured) {
			f.Values.Compared++
			losses.Add(walk.Key(o), u.lost(o.Object))
		})
		if apierror.IsAnswer(err) || errors.Is(err, quicklist.ErrOver) {
			f.Unread, f.Values = decision.Unlisted(f.Live, err), nil
			return nil
		}
		if err != nil {
			return err
		}
		lost, more := losses.List()
		f.Values.Losses, f.Values.More = values.Merge(f.Values.Losses, lost), f.Values.More || more
	}
	if f.Objects == nil && len(f.Values.Uncompared) == 0 {
		f.Objects = &f.Values.Compared
	}
	return nil
}

// eachObject visits all whole objects, page by page.
func (m *Checker) eachObject(ctx context.Context, resource schema.GroupVersionResource, visit func(*unstructured.Unstructured)) error {
	for page, err := range m.client.WholeObjects(ctx, kube.Scope{Resource: resource}, walk.ListOptions{Attempts: quicklist.Attempts, Retry: quicklist.Transient}) {
		if err != nil {
			return err
		}
		for _, o := range page.Items {
			visit(o)
		}
	}
	return nil
}

// namedBy selects the versions of a group that entries name.
func namedBy(entries []metav1.ManagedFieldsEntry, group string, versions []string) []string {
	var named []string
	for _, e := range entries {
		gv, err := schema.ParseGroupVersion(e.APIVersion)
		if err == nil && gv.Group == group && slices.Contains(versions, gv.Version) {
			named = append(named, gv.Version)
		}
	}
	return named
}

// pages lists the metadata of all objects.
func (m *Checker) pages(ctx context.Context, resource schema.GroupVersionResource) walk.Source[*metav1.PartialObjectMetadata] {
	fetch := func(ctx context.Context, limit int64, token string) (walk.Page[*metav1.PartialObjectMetadata], string, error) {
		list, err := m.client.Objects(ctx, resource, limit, token)
		if err != nil {
			return walk.Page[*metav1.PartialObjectMetadata]{}, "", fmt.Errorf("list %s: %w", resource.GroupResource(), apierror.RetryForbidden(err))
		}
		page := walk.Page[*metav1.PartialObjectMetadata]{ResourceVersion: list.ResourceVersion, Remaining: kube.Remaining(list)}
		for i := range list.Items {
			page.Items = append(page.Items, &list.Items[i])
		}
		return page, list.Continue, nil
	}
	return walk.List(ctx, fetch, walk.ListOptions{PageObjects: m.options.PageObjects, Attempts: quicklist.Attempts, Retry: quicklist.Transient})
}

// dryRun sends a CRD as a dry run: of its creation or, with a resourceVersion, of
// an update.
func dryRun(ctx context.Context, c *kube.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	crd.TypeMeta = metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"}
	body, err := json.Marshal(crd)
	if err != nil {
		return err
	}
	r := c.Put().AbsPath(kube.CRDPath(crd.Name)...)
	if crd.ResourceVersion == "" {
		path := kube.CRDPath(crd.Name)
		r = c.Post().AbsPath(path[:len(path)-1]...)
	}
	return kube.Do(ctx, r.SetHeader("Accept", kube.AcceptMetadata).
		SetHeader("Content-Type", runtime.ContentTypeJSON).
		Param("fieldManager", kube.FieldManager).
		Param("dryRun", metav1.DryRunAll).
		Body(body)).Error()
}

// tryWays sends the release as dry runs, in the ways in which users install it. It ends at the first that the API server refuses.
// An update of the whole CRD, which the API server accepts, does not show what these keep of the live CRD.
func (m *Checker) tryWays(ctx context.Context, f *Facts, file map[string]any) error {
	need := decision.Grant{Verb: "patch", Resource: kube.CRDs, Name: f.Live.Name}
	if ok, err := kube.Allowed(ctx, m.client, need); err != nil || !ok {
		if err == nil {
			f.Applied = DryRun{Skipped: fmt.Sprintf("%s may not %s", cmp.Or(kube.UserName(ctx, m.client), "the current user"), need)}
		}
		return err
	}
	manifest, err := manifestOf(f.Next, file)
	if err != nil {
		return err
	}
	for _, w := range waysOf(f.Live) {
		refused := m.try(ctx, f.Live, w, manifest, w.unsure) // who applies may force: a conflict of another tool says nothing
		if w.manager != "" && apierrors.IsConflict(refused) {
			f.Conflict = apierror.Message(refused)
			refused = m.try(ctx, f.Live, w, manifest, true)
		}
		tried, err := dryRunOf(refused)
		switch {
		case err != nil:
			return err
		case tried.Refusal != "":
			f.Applied, f.AppliedBy, f.AppliedUnsure = tried, w.command, w.unsure
			return nil
		case f.Applied.Skipped == "":
			f.Applied = tried
		}
	}
	return nil
}

func (m *Checker) try(ctx context.Context, live *apiextensionsv1.CustomResourceDefinition, w way, manifest map[string]any, force bool) error {
	body, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	r, manager := m.client.Patch(types.ApplyPatchType).Param("force", strconv.FormatBool(force)), w.manager
	if manager == "" {
		current, err := json.Marshal(live)
		if err != nil {
			return err
		}
		if body, err = w.recorded(body); err != nil {
			return err
		}
		body, err = jsonmergepatch.CreateThreeWayJSONMergePatch(w.applied, body, current)
		if err != nil {
			return fmt.Errorf("compare %s with what was applied: %w", live.Name, err)
		}
		r, manager = m.client.Patch(types.MergePatchType), kube.FieldManager
	}
	return kube.Do(ctx, r.AbsPath(kube.CRDPath(live.Name)...).
		SetHeader("Accept", kube.AcceptMetadata).
		Param("fieldManager", manager).Param("dryRun", metav1.DryRunAll).Body(body)).Error()
}
