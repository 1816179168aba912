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
	// Time is when the command began.
	Time  time.Time `json:"time,omitzero"`
	Items []T       `json:"items"`
}

// Dated is a document that says when its command began. `godwit report` orders evidence by it.
type Dated interface {
	// WithTime returns the document with a time.
	WithTime(began time.Time) any
}

// WithTime implements [Dated].
func (l List[T]) WithTime(began time.Time) any {
	l.Time = began
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
