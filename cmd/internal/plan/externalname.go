package plan

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamepermission"
	"github.com/godwit-dev/godwit/cmd/internal/externalname/externalnamereport"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/externalname/audit"
	"github.com/godwit-dev/godwit/externalname/fleet"
)

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

// planNames audits the names of all kinds as they are, as `externalname audit` does.
func (s *scanner) planNames(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) planreport.Row {
	kinds := make([]fleet.Kind, len(crds))
	for i, crd := range crds {
		kinds[i] = fleet.KindOf(crd)
	}
	reader, err := audit.NewReader(s.config, s.limiter)
	if err != nil {
		return s.failed(ctx, planreport.ExternalNames, err, nil)
	}
	facts, err := reader.Read(ctx, kinds)
	if err != nil {
		return s.failed(ctx, planreport.ExternalNames, err, nil)
	}
	r := externalnamereport.NewAuditReport(facts, audit.Decide(facts.Managed, audit.Options{Now: facts.Now}), s.app.Remedies(), func(err error) render.Problem {
		return problemOf(s.Explain(ctx, err))
	})
	return planreport.ExternalNameRow(r, s.lacking(ctx, r, crds), s.app.Hint)
}

// lacking returns the problem of permissions that the user lacks, or nil.
func (s *scanner) lacking(ctx context.Context, r externalnamereport.AuditReport, crds []*apiextensionsv1.CustomResourceDefinition) *render.Problem {
	if len(r.Unread) == 0 {
		return nil
	}
	denied := s.Denied(ctx, namePermissions(crds))
	if len(denied) == 0 {
		return nil
	}
	problem := problemOf(s.Lacks(s.WhoAmI(ctx), denied))
	return &problem
}

func namePermissions(crds []*apiextensionsv1.CustomResourceDefinition) []permission.Permission {
	var names []string
	for _, crd := range crds {
		names = append(names, crd.Name)
	}
	return externalnamepermission.Audit.Permissions(permission.Scope{CRDs: names})
}
