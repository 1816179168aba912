// Package planreport is the output of `godwit plan`: a row for each cluster and domain. It is pure:
// values in, text out.
//
// The plan of each domain decides the states of its objects. This package maps them to the states of a row, and counts
// them.
//
// # Reading order
//
// contract.go has the row, reason.go the reasons, and row.go makes a row of objects. crd.go, reference.go, revision.go,
// externalname.go, hub.go and resource.go map the plans of the domains. table.go has the columns. text.go writes text, markdown.go a page in
// Markdown, and page.go a page in HTML. A file uses only files before it.
package planreport

import (
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// State is the state of a domain of a cluster, or of one of its objects.
type State string

const (
	// Clean means that nothing is left to do.
	Clean State = "Clean"
	// Ready means that the next command does the work.
	Ready State = "Ready"
	// InProgress means that the work has begun and continues without the user.
	InProgress State = "InProgress"
	// Blocked means that the user must act first, as a blocker says.
	Blocked State = "Blocked"
	// Unknown means that the objects could not be read.
	Unknown State = "Unknown"
	// NotChecked means that the user lacks the permission to read the domain.
	NotChecked State = "NotChecked"
	// Unreachable means that the cluster did not answer.
	Unreachable State = "Unreachable"
)

// States are all states, from the most severe one.
var States = []State{Unreachable, Unknown, NotChecked, Blocked, Ready, InProgress, Clean}

// Domain is what a row is about.
type Domain string

const (
	// Cluster is the row of a cluster that did not answer.
	Cluster Domain = "Cluster"
	// CRDs are the storage versions of custom resources.
	CRDs Domain = "CRDs"
	// References are what names a version of a CRD that the CRD does not serve.
	References Domain = "References"
	// Revisions are objects that ControllerRevisions store.
	Revisions Domain = "Revisions"
	// ExternalNames are the external names of managed resources.
	ExternalNames Domain = "ExternalNames"
	// Hubs are migrations of managed clusters between hubs.
	Hubs Domain = "Hubs"
	// Resources are interrupted runs over resources of the API server itself.
	Resources Domain = "Resources"
)

// Domains are all domains, in the order of rows.
var Domains = []Domain{Cluster, CRDs, References, Revisions, ExternalNames, Hubs, Resources}

// Counts are the objects of a row by state.
type Counts struct {
	Clean      int64 `json:"clean"`
	Ready      int64 `json:"ready"`
	InProgress int64 `json:"inProgress"`
	Blocked    int64 `json:"blocked"`
	Unknown    int64 `json:"unknown"`
}

// Total is the sum.
func (c Counts) Total() int64 { return c.Clean + c.Ready + c.InProgress + c.Blocked + c.Unknown }

// Add counts an object.
func (c *Counts) Add(s State) {
	switch s {
	case Clean:
		c.Clean++
	case Ready:
		c.Ready++
	case InProgress:
		c.InProgress++
	case Blocked:
		c.Blocked++
	default:
		c.Unknown++
	}
}

// Object is a CRD, a ControllerRevision, a managed resource or a migration of managed clusters.
type Object struct {
	// Name has the namespace before a slash, if there is one.
	Name  string `json:"name"`
	State State  `json:"state"`
	// Detail is what the domain says about the object, such as its versions.
	Detail string `json:"detail"`
	// Blockers are why the object is not Clean, and what to do.
	Blockers []render.ObjectProblem `json:"blockers"`
	// Next is the next command. It is empty if there is nothing to do.
	Next string `json:"next"`
}

// Row is one domain of one cluster.
type Row struct {
	// Cluster is the context of the kubeconfig, or the address of the API server.
	Cluster string `json:"cluster"`
	// ClusterUID is the UID of the namespace kube-system, by which clusters differ; empty if the user may not read it.
	ClusterUID string `json:"clusterUID"`
	Domain     Domain `json:"domain"`
	// State is that of the most severe object.
	State  State  `json:"state"`
	Counts Counts `json:"counts"`
	// Blockers are why the row is not Clean: those of the domain as a whole, and those of its objects.
	Blockers []render.ObjectProblem `json:"blockers"`
	// Next is the next command. It is empty if there is nothing to do.
	Next string `json:"next"`
	// Objects are the first objects, the most severe ones first. Counts contains all.
	Objects []Object `json:"objects"`
	// ObjectsLeftOut is the number of objects that Objects does not have.
	ObjectsLeftOut int64 `json:"objectsLeftOut"`
}

// PlanList is what `godwit plan` prints.
type PlanList struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is when the command began to read.
	Time time.Time `json:"time"`
	// Version is that of the program.
	Version string `json:"version"`
	Items   []Row  `json:"items"`
	// Notes say what the plan can't show, with the command that does.
	Notes []string `json:"notes"`
}

// Kind is the kind of the document.
const Kind = "PlanList"

// NewPlanList makes the document.
func NewPlanList(rows []Row, version string, now time.Time, notes ...string) PlanList {
	for i := range rows {
		r := &rows[i]
		r.Blockers, r.Objects = render.Present(r.Blockers), render.Present(r.Objects)
		for j := range r.Objects {
			r.Objects[j].Blockers = render.Present(r.Objects[j].Blockers)
		}
	}
	return PlanList{APIVersion: render.APIVersion, Kind: Kind, Time: now.UTC().Truncate(time.Second), Version: version, Items: render.Present(rows), Notes: render.Present(notes)}
}
