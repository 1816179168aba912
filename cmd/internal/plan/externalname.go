package plan

import (
	"context"
	"errors"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamepermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/externalname/fleet"
	"github.com/godwit-dev/godwit/internal/kube"
)

// annotationName is crossplane-runtime's annotation of the external name.
const annotationName = "crossplane.io/external-name"

// managedCRDs returns the CRDs of managed resources. counts has their numbers of objects; CRDs without objects are
// omitted.
func (s *scanner) managedCRDs(counts map[string]int64) (crds []*apiextensionsv1.CustomResourceDefinition, has bool) {
	for i := range s.crds {
		if crd := &s.crds[i]; fleet.ManagedCRD(crd) {
			has = true
			if n, counted := counts[crd.Name]; !counted || n > 0 {
				crds = append(crds, crd)
			}
		}
	}
	return crds, has
}

// unchanged proposes the current name of a managed resource.
func unchanged(_ context.Context, o *unstructured.Unstructured) (fleet.Proposal, error) {
	return fleet.Proposal{Name: o.GetAnnotations()[annotationName]}, nil
}

// planNames plans the names of all kinds as they are: it finds names that can't be managed, and
// interrupted renamings.
func (s *scanner) planNames(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) planreport.Row {
	kinds, errs := make([]planreport.NamesOfKind, len(crds)), make([]error, len(crds))
	next := make(chan struct{}, kindsAtOnce)
	var reads sync.WaitGroup
	for i, crd := range crds {
		next <- struct{}{}
		reads.Go(func() {
			defer func() { <-next }()
			kinds[i], errs[i] = s.planKind(ctx, crd)
		})
	}
	reads.Wait()
	if err := errors.Join(errs...); err != nil {
		return s.failed(ctx, planreport.ExternalNames, firstOf(errs), namePermissions(crds))
	}
	return planreport.ExternalNameRow(kinds, s.app.Hint)
}

// kindsAtOnce bounds the pages of whole objects in memory.
const kindsAtOnce = 4

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) planKind(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (planreport.NamesOfKind, error) {
	kind := fleet.Kind{Resource: kube.ResourceOf(crd), Kind: crd.Spec.Names.Kind, Upjet: fleet.UpjetCRD(crd)}
	all := planreport.NamesOfKind{CRD: crd.Name}
	f, err := fleet.New(s.config, kind, fleet.Options{Limiter: s.limiter})
	if err != nil {
		return all, err
	}
	items, err := f.Plan(ctx, unchanged)
	all.Plans = externalnamereport.PlanList(kind, items, s.app.Remedies()).Items
	return all, err
}

func namePermissions(crds []*apiextensionsv1.CustomResourceDefinition) []permission.Permission {
	var names []string
	for _, crd := range crds {
		names = append(names, crd.Name)
	}
	return externalnamepermission.Plan.Permissions(permission.Scope{CRDs: names})
}
