// Package managedfields removes entries of managedFields that name a version which a CRD does not serve: the API server fails
// every apply for which it has to read such an entry. The package decides; package storageversion writes.
package managedfields

import (
	"errors"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/kube"
)

// seedFields is the least that an entry can own. If an object has no entry,
// the server takes the next apply for its first one, and invents an owner of
// all present fields.
const seedFields = `{"f:metadata":{"f:name":{}}}`

// Cleaner removes entries from managedFields of the objects of one CRD.
type Cleaner struct {
	group   string
	storage string // version of a seeding entry
	served  []string
	webhook bool // converts
	now     func() time.Time
}

// For returns the cleaner for objects of a CRD. Entries that it makes have the time of now.
func For(crd *apiextensionsv1.CustomResourceDefinition, now func() time.Time) *Cleaner {
	conversion := crd.Spec.Conversion
	return &Cleaner{
		group: crd.Spec.Group, storage: kube.StorageVersion(crd), served: kube.ServedVersions(crd), now: now,
		webhook: conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter,
	}
}

// Clean returns the entries that stay, and whether an entry was removed. It
// does not change its argument. If no entry is left, it adds one with
// seedFields, for the manager of the first removed entry.
func (c *Cleaner) Clean(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool) {
	first := slices.IndexFunc(entries, c.isStale)
	if first < 0 {
		return entries, false
	}
	kept := slices.DeleteFunc(slices.Clone(entries), c.isStale)
	if len(kept) == 0 {
		now := metav1.NewTime(c.now())
		kept = []metav1.ManagedFieldsEntry{{
			Manager:    entries[first].Manager,
			Operation:  entries[first].Operation,
			APIVersion: schema.GroupVersion{Group: c.group, Version: c.storage}.String(),
			Time:       &now,
			FieldsType: "FieldsV1",
			FieldsV1:   metav1.NewFieldsV1(seedFields),
		}}
	}
	return kept, true
}

// Stale reports whether managedFields have an entry to remove.
func (c *Cleaner) Stale(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, c.isStale)
}

func (c *Cleaner) isStale(e metav1.ManagedFieldsEntry) bool {
	gv, err := schema.ParseGroupVersion(e.APIVersion)
	return err != nil || gv.Group != c.group || !slices.Contains(c.served, gv.Version)
}

// Converted reports whether a write makes the server convert managedFields by a webhook: an entry
// is at another version than the storage version. If an entry is stale, the server can't read any,
// and converts none. The cleaner is nil for a resource without a CRD.
func (c *Cleaner) Converted(entries []metav1.ManagedFieldsEntry) bool {
	if c == nil || !c.webhook || c.Stale(entries) {
		return false
	}
	stored := schema.GroupVersion{Group: c.group, Version: c.storage}.String()
	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return e.APIVersion != stored })
}

// Dropped returns [ErrDropped] if a write cost the object its managedFields. The server drops them
// silently if the object is too large for etcd with them and, before Kubernetes 1.37, if it can't
// convert them.
func Dropped(before, after *metav1.PartialObjectMetadata) error {
	if len(before.ManagedFields) > 0 && len(after.ManagedFields) == 0 {
		return ErrDropped
	}
	return nil
}

// ErrDropped reports a write that cost an object all its managedFields.
var ErrDropped = errors.New("the API server dropped all managedFields, since the object is too large with them or its conversion webhook is down; every applier has to apply again to own its fields")

// ErrUnconverted reports a write that was not sent, since it would have cost the object its managedFields.
var ErrUnconverted = errors.New("the API server would drop all managedFields, since the conversion webhook does not convert them: repair the webhook")

// ErrKept reports a cleanup that the server accepted and did not carry out, as it
// does with entries that it can't read.
var ErrKept = errors.New("the API server kept managedFields of versions that are not served")
