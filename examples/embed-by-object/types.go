package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Backup is a backup at v2, the only version for which this release of the operator has a Go type.
type Backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec BackupSpec `json:"spec"`
}

// BackupSpec is the spec of a Backup.
type BackupSpec struct {
	Schedule string `json:"schedule"`
}

// BackupList is a list of Backups.
type BackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Backup `json:"items"`
}

func addToScheme(s *runtime.Scheme) error {
	v2 := schema.GroupVersion{Group: "example.com", Version: "v2"}
	s.AddKnownTypes(v2, &Backup{}, &BackupList{})
	metav1.AddToGroupVersion(s, v2)
	return nil
}

// DeepCopyObject implements runtime.Object. In your operator, controller-gen writes such methods.
func (b *Backup) DeepCopyObject() runtime.Object {
	c := *b
	b.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *BackupList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = make([]Backup, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*Backup)
	}
	return &c
}
