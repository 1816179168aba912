package storageversion

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
)

// Target returns what a [Preflight] needs to try writes of the objects of one CRD.
func (m *Migrator) Target(ctx context.Context, crd string) (PreflightTarget, error) {
	c, err := m.client.CRD(ctx, crd)
	if err != nil {
		return PreflightTarget{}, crdReadError(crd, err)
	}
	return m.target(decision.Facts{CRD: c}), nil
}

func (m *Migrator) target(f decision.Facts) PreflightTarget {
	t := PreflightTarget{Facts: f, Policy: m.options.Policy, Client: m.client.Client, PageObjects: m.options.PageObjects}
	t.Policy.Write = t.Policy.Write.OrDefault()
	t.DryRun = func(ctx context.Context, version string, w decision.Write, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		r := t.resourceAt(version)
		if w == decision.WriteUpdate {
			body, err := o.MarshalJSON()
			if err != nil {
				return nil, err
			}
			return dryRun(ctx, m.client.PutRequest(r, o, body))
		}
		p, err := patchOf(w, r.GroupVersion().WithKind(f.CRD.Spec.Names.Kind), o)
		if err != nil {
			return nil, err
		}
		return dryRun(ctx, m.client.PatchRequest(r, o, p))
	}
	rewrites := !kube.Trimmed(f.CRD) && !m.options.Skips(decision.StorageVersionMigrationPhase)
	t.TryCheckpoint = func(ctx context.Context) error {
		journal, onCRD := m.options.Journal.(*evidence.AnnotationJournal)
		if !onCRD || !rewrites {
			return nil
		}
		return journal.Try(ctx, f.CRD.Name)
	}
	t.TryTrim = func(ctx context.Context) error {
		if !rewrites || m.options.NoTrim {
			return nil
		}
		patch := fmt.Appendf(nil, `{"status": {"storedVersions": [%q]}}`, kube.StorageVersion(f.CRD))
		return m.client.TryPatchCRD(ctx, f.CRD.Name, types.MergePatchType, patch, "status")
	}
	return t
}

// dryRun sends a write as a server-side dry run, and returns the object as the write would leave it.
func dryRun(ctx context.Context, req *rest.Request) (*unstructured.Unstructured, error) {
	text, err := kube.Body(kube.Do(ctx, kube.Quiet(req).SetHeader("Accept", runtime.ContentTypeJSON).
		Param("fieldValidation", metav1.FieldValidationIgnore).
		Param("dryRun", metav1.DryRunAll)))
	if err != nil {
		return nil, err
	}
	return kube.Decode(text)
}

// unlisted classifies the answer to a list. If the API server forwards requests for the objects to another server, that one is to blame.
func (m *Migrator) unlisted(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, err error) *decision.UnlistedError {
	e := decision.Unlisted(crd, err)
	if e.MayBeOfOther() {
		var d decision.Discovery
		if d.Service, d.Unavailable, err = m.client.ForwardsTo(ctx, kube.ResourceOf(crd).GroupVersion()); err == nil && d.Service != "" {
			e.Finding = decision.OtherServerAnswers(crd, d)
		}
	}
	e.Starting = e.ServedSoon(crd, m.client.Clock.Now())
	return e
}

// resourceAt is the resource of the objects at a version.
func (t PreflightTarget) resourceAt(version string) schema.GroupVersionResource {
	r := kube.ResourceOf(t.Facts.CRD)
	r.Version = version
	return r
}
