// Package v1 is an API of which one type was forgotten.
package v1

// +kubebuilder:object:root=true
// +kubebuilder:metadata:labels=example.com/migrate=true

// Widget is migrated.
type Widget struct{}

// Gizmo was added in a hurry.
// +kubebuilder:object:root=true
type Gizmo struct{}

// +kubebuilder:object:root=true
// +godwit:storage-version-migrator:exclude=reports are deleted after an hour

// Report is not worth it.
type Report struct{}
