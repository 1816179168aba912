package property

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/test/process"
)

// recreate deletes the CRD, and with it all objects, and creates both again. It returns the storage version. The second server sees
// nothing of it for a while: its controller deletes objects of a CRD that is being deleted, and could delete those of the new CRD.
func (p *play) recreate(ctx context.Context, random *rand.Rand) (storage string) {
	old, alike, storage := p.live(), random.IntN(2) == 0, []string{"v1", "v2"}[random.IntN(2)]
	if alike {
		storage = old.Status.StoredVersions[0]
	}
	if p.lossy {
		storage = "v1" // or the API server drops the secrets of the objects that are created
	}
	p.whileLagging(func() {
		if p.recreations.Add(1) == 1 {
			close(p.deleted)
		}
		p.remove()
		p.flips.Store(0)
		p.create(storage)
		if alike {
			storage = p.repeat(storage, slices.Concat(old.Status.StoredVersions, []string{kube.StorageVersion(old)}), old.Generation)
		}
		if !isClosed(p.recreated) {
			close(p.recreated)
		}
		wait(ctx, upTo(random, p.pace.lag/2))
	})
	return storage
}

// remove deletes the CRD, and returns when it is gone.
func (p *play) remove() {
	if err := p.crds().Delete(p.t.Context(), p.crd, metav1.DeleteOptions{}); err != nil {
		p.t.Fatal(err)
	}
	err := process.Poll(p.t.Context(), "CRD "+p.crd+" to be deleted", func(ctx context.Context) error {
		_, err := p.crds().Get(ctx, p.crd, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there, or the answer is %w", err)
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// repeat gives a new CRD the storage versions that the old one had, one after the other, and its generation, so that the UID alone tells
// the CRDs apart. It returns the last storage version.
func (p *play) repeat(storage string, versions []string, generation int64) string {
	now := int64(1)
	for _, v := range versions {
		if v != storage {
			storage = v
			p.flip(v)
			now++
		}
	}
	for ; now < generation; now++ {
		p.describe(fmt.Sprint("generation ", now+1))
	}
	return storage
}

// awaitRecreated returns when the CRD was created again, or when ctx ends.
func (p *play) awaitRecreated(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-p.recreated:
	}
}
