package evidencereport

import (
	"cmp"
	"slices"

	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// objectKey names an object of a cluster.
type objectKey struct {
	domain planreport.Domain
	name   string
}

// builder builds the report of one cluster from its documents.
type builder struct {
	report  Report
	objects map[objectKey]*Object
	// plans are the counts of the first and of the last plan of a whole domain.
	plans map[planreport.Domain]*Domain
}

// builders has the builder of each cluster.
type builders map[string]*builder

func (all builders) of(cluster string) *builder {
	b := all[cluster]
	if b == nil {
		b = &builder{report: Report{APIVersion: render.APIVersion, Kind: Kind, Cluster: cluster}, objects: map[objectKey]*Object{}, plans: map[planreport.Domain]*Domain{}}
		all[cluster] = b
	}
	return b
}

// object finds an object, or adds it.
func (b *builder) object(d planreport.Domain, name string) *Object {
	k := objectKey{d, name}
	if b.objects[k] == nil {
		b.objects[k] = &Object{Domain: d, Name: name, Blockers: []render.ObjectProblem{}}
	}
	return b.objects[k]
}

// stateIn returns the state of a row for a word of a domain. A word that this release does not know is Unknown.
func stateIn[W comparable](states map[W]planreport.State, word W, unknown planreport.State) planreport.State {
	if s, known := states[word]; known {
		return s
	}
	return unknown
}

// setPlan records the plan of an object.
func (o *Object) setPlan(s planreport.State, blockers []render.ObjectProblem) {
	if o.Before == "" && o.Result == "" {
		o.Before = s
	}
	o.After, o.Blockers = s, render.Present(blockers)
}

// setRun records the run of an object.
func (o *Object) setRun(result, detail string, after planreport.State, blockers []render.ObjectProblem) {
	o.Result, o.Detail, o.After, o.Blockers = result, detail, after, render.Present(blockers)
}

// notProven is the value of Proof for an object that is not proven.
const notProven = "NotProven"

// setVerification records the verification of an object.
func (o *Object) setVerification(proven bool, proof string) {
	if proven {
		o.Proof, o.After = proof, cmp.Or(o.After, planreport.Clean)
		return
	}
	o.Proof = notProven
	if o.After == planreport.Clean || o.After == "" {
		o.After = planreport.Ready
	}
}

// addVersion adds a version of godwit that wrote a document.
func (b *builder) addVersion(version string) {
	if version != "" && !slices.Contains(b.report.Versions, version) {
		b.report.Versions = append(b.report.Versions, version)
	}
}

// isOther reports whether a document says that it is about another cluster than the documents before.
func (b *builder) isOther(h header) bool {
	known := b.report.Origin
	return h.Origin != nil && known != nil && h.Origin.ClusterUID != "" && known.ClusterUID != "" && h.Origin.ClusterUID != known.ClusterUID
}

// addOrigin keeps the first origin that tells the cluster, and all users and versions.
func (b *builder) addOrigin(o *render.Origin) {
	if o == nil {
		return
	}
	if b.report.Origin == nil || b.report.Origin.ClusterUID == "" || b.report.Origin.Server == "" {
		b.report.Origin = o
	}
	b.addVersion(o.Version)
	if o.User != "" && !slices.Contains(b.report.Users, o.User) {
		b.report.Users = append(b.report.Users, o.User)
	}
}

func (b *builder) build() Report {
	r := b.report
	for _, o := range b.objects {
		r.Objects = append(r.Objects, *o)
	}
	slices.SortFunc(r.Objects, func(a, b Object) int {
		return cmp.Or(planreport.Severity(a.After)-planreport.Severity(b.After), cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Name, b.Name))
	})
	r.Result = Complete
	if len(r.Unread) > 0 || len(r.Objects)+len(b.plans) == 0 {
		r.Result = Incomplete
	}
	for _, d := range planreport.Domains {
		if one, found := b.domain(d); found {
			r.Domains = append(r.Domains, one)
			if one.After.Clean != one.After.Total() {
				r.Result = Incomplete
			}
		}
	}
	for _, o := range r.Objects {
		if o.After != planreport.Clean || o.Proof == notProven {
			r.Result = Incomplete
		}
	}
	r.Users = render.Present(r.Users)
	r.Versions, r.Objects, r.Domains = render.Present(r.Versions), render.Present(r.Objects), render.Present(r.Domains)
	r.Documents, r.Unread = render.Present(r.Documents), render.Present(r.Unread)
	return r
}

// domain returns a domain: the objects that documents name, and those that a plan of the whole domain only counts.
func (b *builder) domain(d planreport.Domain) (Domain, bool) {
	all := Domain{Name: d}
	named := false
	for k, o := range b.objects {
		if k.domain == d {
			named = true
			all.After.Add(o.After)
			if o.Before != "" {
				all.Before.Add(o.Before)
			}
		}
	}
	plan := b.plans[d]
	if plan == nil {
		return all, named
	}
	all.Before = plan.Before
	if more := plan.After.Total() - all.After.Total(); more > 0 {
		all.After.Clean += min(more, plan.After.Clean)
		all.After.Unknown += max(0, more-plan.After.Clean)
	}
	return all, true
}
