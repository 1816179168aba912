package evidencereport

import "github.com/godwit-dev/godwit/cmd/internal/plan/planreport"

// addPlan adds each row to the report of its cluster. In the folder of a cluster, all rows are of that
// cluster, whatever the context is called.
func addPlan(all builders, f File) (int, error) {
	l, err := decode[planreport.PlanList](f)
	if err != nil {
		return 0, err
	}
	for _, r := range l.Items {
		cluster := r.Cluster
		if f.Folder {
			cluster = f.Cluster
		}
		all.of(cluster).row(r)
	}
	return len(l.Items), nil
}

// interruptedRun stands for a run over built-in resources that has not ended. The last plan says whether there is one.
const interruptedRun = "interrupted run"

func (b *builder) row(r planreport.Row) {
	switch r.Domain {
	case planreport.Resources:
		b.object(planreport.Resources, interruptedRun).setPlan(r.State, r.Blockers)
		return
	case planreport.CRDs: // the first row of a cluster
		delete(b.objects, objectKey{planreport.Resources, interruptedRun})
	}
	if len(r.Objects) == 0 && r.State != planreport.Clean { // a cluster or a domain that was not read
		b.object(r.Domain, string(r.Domain)).setPlan(r.State, r.Blockers)
		return
	}
	delete(b.objects, objectKey{r.Domain, string(r.Domain)})
	delete(b.objects, objectKey{planreport.Cluster, string(planreport.Cluster)})
	for _, o := range r.Objects {
		b.object(r.Domain, o.Name).setPlan(o.State, o.Blockers)
	}
	listed := map[string]bool{}
	for _, o := range r.Objects {
		listed[o.Name] = true
	}
	for k, o := range b.objects { // a plan leaves objects out that are clean by now
		if k.domain == r.Domain && !listed[k.name] && r.ObjectsLeftOut == 0 && r.Domain != planreport.ExternalNames {
			o.setPlan(planreport.Clean, nil)
		}
	}
	if b.plans[r.Domain] == nil {
		b.plans[r.Domain] = &Domain{Name: r.Domain, Before: r.Counts}
	}
	b.plans[r.Domain].After = r.Counts
}
