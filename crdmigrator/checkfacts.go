package crdmigrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

// Check reads what decides about one definition of the next release, and
// decides. It changes nothing.
func (m *Migrator) Check(ctx context.Context, next *apiextensionsv1.CustomResourceDefinition) (Check, error) {
	f, err := m.ObserveNext(ctx, next)
	if err != nil {
		return Check{}, err
	}
	return CheckFor(f), nil
}

// ObserveNext reads the facts about one definition of the next release: the live
// one, the API server's own verdict by a dry run, and, where a version goes and
// nothing else keeps it from going, the metadata of every object, page by page.
func (m *Migrator) ObserveNext(ctx context.Context, next *apiextensionsv1.CustomResourceDefinition) (CheckFacts, error) {
	f := CheckFacts{Next: next}
	live, err := m.client.CRD(ctx, next.Name)
	switch {
	case apierrors.IsForbidden(err):
		f.Denied = []Grant{{Verb: "get", Resource: kube.CRDs, Name: next.Name}}
		f.User = kube.UserName(ctx, m.client)
		return f, nil
	case err == nil:
		f.Live = live
	case !apierrors.IsNotFound(err):
		return f, notFound(next.Name, err)
	}
	if f.Rehearsal, err = m.rehearse(ctx, f); err != nil {
		return f, fmt.Errorf("dry-run %s: %w", next.Name, err)
	}
	if f.Live == nil || CheckFor(f).Verdict == Refused {
		return f, nil
	}
	return f, m.readObjects(ctx, &f)
}

// rehearse asks the API server. Whether it may be asked is another question: a
// Forbidden alone does not tell a missing right from a policy that refuses.
func (m *Migrator) rehearse(ctx context.Context, f CheckFacts) (Rehearsal, error) {
	need := Grant{Verb: "create", Resource: kube.CRDs}
	if f.Live != nil {
		need = Grant{Verb: "update", Resource: kube.CRDs, Name: f.Live.Name}
	}
	ok, err := kube.Allowed(ctx, m.client, need)
	if err != nil {
		return Rehearsal{}, err
	}
	if !ok {
		return Rehearsal{Skipped: fmt.Sprintf("%s may not %s", orElse(kube.UserName(ctx, m.client), "the current user"), need)}, nil
	}
	return rehearsalOf(m.client.rehearse(ctx, replaced(f)))
}

// replaced is the live definition with the spec of the next release. Labels and
// annotations that others have set stay, as they do with every tool.
func replaced(f CheckFacts) *apiextensionsv1.CustomResourceDefinition {
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

// rehearsalOf: a webhook that can't be rehearsed, a server in trouble and a
// definition that changed in this moment refuse nothing.
func rehearsalOf(err error) (Rehearsal, error) {
	if err == nil {
		return Rehearsal{Accepted: true}, nil
	}
	if !apierror.IsAnswer(err) {
		return Rehearsal{}, err
	}
	switch apierror.Of(err).Class {
	case apierror.NoDryRun, apierror.WebhookUnavailable, apierror.ConversionUnavailable, apierror.ConversionFailed,
		apierror.Throttled, apierror.Timeout, apierror.ServerError, apierror.Conflict, apierror.NotFound:
		return Rehearsal{Skipped: err.Error()}, nil
	}
	return Rehearsal{Refusal: orElse(err.Error(), apierror.Message(err))}, nil
}

// readObjects counts the objects and those whose managedFields name a removed
// version, if the verdict hangs on that.
func (m *Migrator) readObjects(ctx context.Context, f *CheckFacts) error {
	removed := f.removed()
	if len(removed) == 0 && len(kube.ServedVersions(f.Next)) > 0 {
		return nil
	}
	resource := kube.ResourceOf(f.Live)
	if !kube.Serves(f.Live, resource.Version) {
		others := kube.ServedVersions(f.Live)
		if len(others) == 0 {
			f.Unread = unserved(f.Live)
			return nil
		}
		resource.Version = others[0]
	}
	need := Grant{Verb: "list", Resource: resource.GroupResource()}
	ok, err := kube.Allowed(ctx, m.client, need)
	if err != nil {
		return err
	}
	if !ok {
		f.Denied, f.User = []Grant{need}, kube.UserName(ctx, m.client)
		return nil
	}
	// One object first: a list of all waits much longer for a conversion webhook.
	err = retryList(ctx, func(ctx context.Context) error {
		_, err := m.client.firstObject(ctx, resource, listLimit)
		return err
	})
	if err == nil {
		err = m.scan(ctx, f, resource, removed)
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) || errors.Is(err, errListOver) {
		f.Unread = unlisted(f.Live, err)
		return nil
	}
	return err
}

func (m *Migrator) scan(ctx context.Context, f *CheckFacts, resource schema.GroupVersionResource, removed []string) error {
	var objects, stale int64
	var example string
	named := map[string]bool{}
	pages := walk.ListOptions{PageObjects: m.options.PageObjects, Attempts: listTries, Retry: retryQuick}
	for page, err := range m.list.objects(ctx, resource, pages) {
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

// namedBy are those among the versions of a group that entries name.
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
