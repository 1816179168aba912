package render

import (
	"time"

	"github.com/godwit-dev/godwit"
)

// APIVersion is the apiVersion of every list that a command prints.
const APIVersion = "cli.godwit.dev/v1alpha1"

// List is the outermost object of all output.
type List[T any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Provenance
	Items []T `json:"items"`
}

// Provenance says when and where a document was made. `godwit report` compares the documents of a cluster by it.
type Provenance struct {
	// Time is when the command began.
	Time time.Time `json:"time,omitzero"`
	// Origin is not there if the command used no cluster.
	Origin *Origin `json:"origin,omitempty"`
}

// Origin is the cluster that a document is about.
type Origin struct {
	// Server is the address of the API server.
	Server string `json:"server"`
	// ClusterUID is the UID of the namespace kube-system, by which clusters differ; empty if the user may not read it.
	ClusterUID string `json:"clusterUID"`
	// User is for whom the API server took the command; empty if it did not say.
	User string `json:"user"`
	// Version is that of the program.
	Version string `json:"version"`
}

// Evidence is a document with a provenance.
type Evidence interface {
	// WithProvenance returns the document with a provenance.
	WithProvenance(Provenance) any
}

// WithProvenance implements [Evidence].
func (l List[T]) WithProvenance(p Provenance) any {
	l.Provenance = p
	return l
}

// NewList returns a list of a kind. Its items are never null.
func NewList[T any](kind string, items []T) List[T] {
	return List[T]{APIVersion: APIVersion, Kind: kind, Items: Present(items)}
}

// Item is an item of a list that names a Kubernetes object.
type Item interface {
	// ResourceName returns the object in kubectl's form: "RESOURCE.GROUP/NAME".
	ResourceName() string
}

// NamesOf returns the resource name of each item.
func NamesOf[T Item](items []T) []string {
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = item.ResourceName()
	}
	return names
}

// Present returns an empty slice for nil, so that JSON has [] and never null.
func Present[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// Objects counts outcomes. Total is their sum.
type Objects struct {
	Total int64 `json:"total"`
	godwit.Counts
}

// ObjectsOf returns counts with their total.
func ObjectsOf(c godwit.Counts) Objects { return Objects{Total: c.Total(), Counts: c} }
