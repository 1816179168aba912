package widget

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/walk"
)

// Old counts the objects that etcd stores at another version than the storage version.
func (r *Resource) Old(ctx context.Context) (int, error) {
	counts, err := r.cluster.CountStored(ctx, r.group, Plural)
	if err != nil {
		return 0, err
	}
	old := 0
	for version, n := range counts {
		if version != r.group+"/"+r.storage {
			old += n
		}
	}
	return old, nil
}

// StoredVersions returns status.storedVersions of the CRD.
func (r *Resource) StoredVersions(ctx context.Context) ([]string, error) {
	clients, err := clientset.NewForConfig(r.cluster.User)
	if err != nil {
		return nil, err
	}
	crd, err := clients.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, r.CRD(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return crd.Status.StoredVersions, nil
}

// MustBeMigrated fails unless etcd holds every object at the storage version, so that only completed work counts.
func (r *Resource) MustBeMigrated(ctx context.Context) error {
	counts, err := r.cluster.CountStored(ctx, r.group, Plural)
	if err != nil {
		return err
	}
	if counts[r.group+"/"+r.storage] != len(r.names) {
		return fmt.Errorf("etcd holds %v, want %d objects at %s", counts, len(r.names), r.storage)
	}
	return nil
}

// MustBeTrimmed fails unless the CRD's status lists the storage version alone.
func (r *Resource) MustBeTrimmed(ctx context.Context) error {
	stored, err := r.StoredVersions(ctx)
	if err == nil && !slices.Equal(stored, []string{r.storage}) {
		err = fmt.Errorf("%s: storedVersions are %v, want %s alone", r.CRD(), stored, r.storage)
	}
	return err
}

// Revision returns the revision of etcd, which grows with each write.
func (r *Resource) Revision(ctx context.Context) (int64, error) {
	response, err := r.cluster.Etcd().Get(ctx, "revision")
	if err != nil {
		return 0, err
	}
	return response.Header.Revision, nil
}

// pollRevision is short compared with the time of half a migration.
const pollRevision = 10 * time.Millisecond

// AwaitHalf returns when etcd has stored half of the objects again since a revision.
func (r *Resource) AwaitHalf(ctx context.Context, since int64) error {
	for {
		now, err := r.Revision(ctx)
		if err != nil || now >= since+int64(len(r.names)/2) {
			return err
		}
		if err := walk.Wait(ctx, pollRevision); err != nil {
			return fmt.Errorf("wait for %d writes of %s: %w", len(r.names)/2, r.CRD(), err)
		}
	}
}
