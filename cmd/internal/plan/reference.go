package plan

import (
	"context"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/crdmigrator/doctor"
)

// planReferences finds references to versions that CRDs do not serve. It reads the metadata of all objects.
func (s *scanner) planReferences(ctx context.Context) planreport.Row {
	d, err := doctor.New(s.config, s.limiter)
	if err != nil {
		return s.failed(ctx, planreport.References, err, nil)
	}
	subjects := make([]doctor.Subject, len(s.crds))
	for i := range s.crds {
		subjects[i] = doctor.SubjectOf(&s.crds[i])
	}
	facts, err := d.Observe(ctx, subjects, nil)
	if err != nil {
		return s.failed(ctx, planreport.References, err, nil)
	}
	return planreport.ReferenceRow(crdreport.NewDoctorReport(facts, s.app.Remedies()), s.app.Hint, s.grantDoctor(ctx, facts))
}

// grantDoctor returns the fix that permits the user to read everything. The permissions of a plan do not include this,
// because they would show all Secrets.
func (s *scanner) grantDoctor(ctx context.Context, f doctor.Facts) string {
	if len(f.Unread) == 0 {
		return ""
	}
	of := s.Purpose
	of.Command, of.Scope = crdpermission.Doctor, nil
	return of.Remedy(s.WhoAmI(ctx))
}
