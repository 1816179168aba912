package evidencereport

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"

	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// adder adds a document to the report of its cluster, or to those of several, and returns the number of
// its items.
type adder func(all builders, f File) (items int, err error)

// kinds are the documents that a report contains.
var kinds = map[string]adder{
	planreport.Kind:              addPlan,
	"CRDPlanList":                each((*builder).crdPlan),
	"CRDRunReportList":           each((*builder).crdRun),
	"CRDVerifyReportList":        each((*builder).verification),
	"CRDCheckList":               each((*builder).check),
	"CRDRescueList":              each((*builder).rescue),
	"CRDDoctorReportList":        addDiagnoses,
	"ResourcePlanList":           each((*builder).resourcePlan),
	"ResourceRunReportList":      each((*builder).resourceRun),
	"ResourceVerifyReportList":   each((*builder).resourceVerification),
	"RevisionPlanList":           addRevisionPlan,
	"RevisionRunReport":          addRevisionRun,
	"ExternalNamePlanList":       each((*builder).namePlan),
	"ExternalNameRunList":        each((*builder).nameRun),
	"ClusterPreflight":           addPreflight,
	"ClusterMigrationReport":     addMigration,
	"ClusterMigrationReportList": each((*builder).migration),
	"VersionList":                addVersions,
}

// each adds every item of a list to the report of the cluster whose file it is.
func each[T any](add func(*builder, T)) adder {
	return func(all builders, f File) (int, error) {
		l, err := decode[render.List[T]](f)
		if err != nil {
			return 0, err
		}
		for _, one := range l.Items {
			add(all.of(f.Cluster), one)
		}
		return len(l.Items), nil
	}
}

// Gather makes a report for each cluster. Files count in the order of their names: the first plan is
// the state before, and the last document about an object is the state after.
func Gather(files []File) []Report {
	all := builders{}
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Name, b.Name) }) {
		all.add(f)
	}
	var reports []Report
	for _, cluster := range slices.Sorted(maps.Keys(all)) {
		reports = append(reports, all[cluster].build())
	}
	return reports
}

func (all builders) add(f File) {
	h, unread := f.header()
	if unread == nil && kinds[h.Kind] == nil {
		unread = &Unread{f.Name, render.Cause{Reason: ReasonKindUnknown.Name, Message: fmt.Sprintf("a report contains no document of kind %s", h.Kind)}}
	}
	if unread != nil {
		b := all.of(f.Cluster)
		b.report.Unread = append(b.report.Unread, *unread)
		return
	}
	if b := all[f.Cluster]; b != nil && b.isOther(h) {
		b.report.Unread = append(b.report.Unread, Unread{f.Name, render.Cause{Reason: ReasonOtherCluster.Name, Message: fmt.Sprintf(
			"the document is about the cluster whose namespace kube-system has the UID %s, and earlier ones about that with the UID %s", h.Origin.ClusterUID, b.report.Origin.ClusterUID)}})
		return
	}
	clusters := maps.Clone(all)
	items, err := kinds[h.Kind](all, f)
	if err != nil {
		maps.DeleteFunc(all, func(name string, _ *builder) bool { return clusters[name] == nil })
		b := all.of(f.Cluster)
		b.report.Unread = append(b.report.Unread, Unread{f.Name, render.Cause{Reason: ReasonFileUnreadable.Name, Message: fmt.Sprintf("the document of kind %s can't be read: %v", h.Kind, err)}})
		return
	}
	d := Document{File: f.Name, Kind: h.Kind, Time: f.Time.UTC(), TimeOf: "File", Items: items, DurationSeconds: h.duration(), SHA256: fmt.Sprintf("%x", sha256.Sum256(f.Text))}
	if h.Time != nil {
		d.Time, d.TimeOf = h.Time.UTC(), "Document"
	}
	for _, b := range all.reportsOf(f, h.Kind) {
		b.report.Documents = append(b.report.Documents, d)
		b.addVersion(h.Version)
		b.addOrigin(h.Origin)
	}
}

// reportsOf returns the reports to which a document belongs. A plan of several clusters belongs to each.
func (all builders) reportsOf(f File, kind string) []*builder {
	if kind != planreport.Kind || f.Folder {
		return []*builder{all.of(f.Cluster)}
	}
	l, _ := decode[planreport.PlanList](f) // it was decoded before
	var of []*builder
	for _, r := range l.Items {
		if b := all.of(r.Cluster); !slices.Contains(of, b) {
			of = append(of, b)
		}
	}
	if len(of) == 0 {
		of = append(of, all.of(f.Cluster))
	}
	return of
}

// addVersions adds the version of the command line: a manager or an API server wrote no document.
func addVersions(all builders, f File) (int, error) {
	l, err := decode[render.List[struct{ Role, Version string }]](f)
	if err != nil {
		return 0, err
	}
	for _, p := range l.Items {
		if p.Role == "Client" {
			all.of(f.Cluster).addVersion(p.Version)
		}
	}
	return len(l.Items), nil
}
