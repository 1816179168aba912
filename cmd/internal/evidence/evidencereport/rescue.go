package evidencereport

import (
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// rescueStates are the states that a rescue leaves. Without an entry, the objects are as they were, or some are.
var rescueStates = map[crdreport.Result]planreport.State{
	crdreport.Rescued: planreport.Clean, crdreport.Healthy: planreport.Clean, crdreport.Ready: planreport.Ready,
}

func (b *builder) rescue(r crdreport.Rescue) {
	after := stateIn(rescueStates, r.Result, planreport.Blocked)
	detail := render.Number(r.Objects.Migrated) + " migrated of " + render.Count(r.Objects.Total, "object", "objects")
	b.object(planreport.CRDs, r.Name).setRun(string(r.Result), detail, after, failures(r.Failures))
}

// addDiagnoses adds what names versions of CRDs that are not served. The last document about a CRD counts.
func addDiagnoses(all builders, f File) (int, error) {
	d, err := decode[crdreport.DoctorReport](f)
	if err != nil {
		return 0, err
	}
	b := all.of(f.Cluster)
	row := planreport.ReferenceRow(d, noCommands, "")
	for _, o := range row.Objects {
		b.object(planreport.References, o.Name).setPlan(o.State, o.Blockers)
	}
	whole := objectKey{planreport.References, string(planreport.References)}
	delete(b.objects, whole)
	if len(d.Unread) > 0 {
		b.object(whole.domain, whole.name).setPlan(row.State, row.Blockers[:1])
	}
	return len(d.Items), nil
}
