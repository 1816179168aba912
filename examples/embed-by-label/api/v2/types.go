// Package v2 is the version of the API that this release stores.
// +groupName=ci.example.com
package v2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Pipeline objects are kept for years, and are migrated.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:metadata:labels=godwit.dev/auto-migrate-storage-version=true
type Pipeline struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec PipelineSpec `json:"spec,omitzero"`
}

// PipelineSpec is the spec of a Pipeline.
type PipelineSpec struct {
	Image string `json:"image,omitempty"`
}

// Run objects are deleted after a day, and are not migrated.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +godwit:storage-version-migrator:exclude="runs are deleted after a day; none outlives a release"
type Run struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec RunSpec `json:"spec,omitzero"`
}

// RunSpec is the spec of a Run.
type RunSpec struct {
	Pipeline string `json:"pipeline,omitempty"`
}

// PipelineList is a list of Pipelines.
//
// +kubebuilder:object:root=true
type PipelineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Pipeline `json:"items"`
}

// RunList is a list of Runs.
//
// +kubebuilder:object:root=true
type RunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Run `json:"items"`
}

// AddToScheme adds the types to a manager's scheme.
func AddToScheme(s *runtime.Scheme) error {
	v2 := schema.GroupVersion{Group: "ci.example.com", Version: "v2"}
	s.AddKnownTypes(v2, &Pipeline{}, &PipelineList{}, &Run{}, &RunList{})
	metav1.AddToGroupVersion(s, v2)
	return nil
}
