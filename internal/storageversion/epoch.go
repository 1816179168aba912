package storageversion

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
	"github.com/godwit-dev/godwit/internal/storageversion/managedfields"
)

// epoch is what a run knows of its CRD at one generation. It never changes: a run that
// continues after a change of the CRD replaces the whole epoch.
type epoch struct {
	crd     *apiextensionsv1.CustomResourceDefinition
	gvr     schema.GroupVersionResource
	kind    string
	cleaner *managedfields.Cleaner
	key     kube.Generation
}

func (m *Migrator) epochOf(crd *apiextensionsv1.CustomResourceDefinition) *epoch {
	return &epoch{
		crd: crd, gvr: kube.ResourceOf(crd), kind: crd.Spec.Names.Kind,
		cleaner: managedfields.For(crd, m.client.Clock.Now), key: kube.GenerationOf(crd),
	}
}

// checkExists returns [decision.ErrChanged] if the metadata are of another CRD with the same name, or of
// one that is being deleted.
func (e *epoch) checkExists(m *metav1.PartialObjectMetadata) error {
	switch {
	case m.UID != e.key.UID:
		return fmt.Errorf("%w: %s was deleted and created again", decision.ErrChanged, e.crd.Name)
	case m.DeletionTimestamp != nil:
		return fmt.Errorf("%w: %s is being deleted", decision.ErrChanged, e.crd.Name)
	}
	return nil
}

// resume returns the checkpoint for the next generation of the CRD, or [decision.ErrChanged] if the new
// spec voids the checkpoint, or if the write can no longer be sent.
func (e *epoch) resume(next *apiextensionsv1.CustomResourceDefinition, c evidence.Checkpoint, w decision.Write) (evidence.Checkpoint, error) {
	resumed, ok := c.Resume(next)
	switch {
	case !ok:
		change := fmt.Sprintf("its spec moved from generation %d to %d", e.key.Generation, next.Generation)
		if now := kube.StorageVersion(next); now != c.StorageVersion {
			change += fmt.Sprintf(" and stores %q instead of %q", now, c.StorageVersion)
		}
		return c, fmt.Errorf("%w: %s (written by %s)", decision.ErrChanged, change, strings.Join(settle.SpecManagers(next), ", "))
	case !kube.Serves(next, e.gvr.Version):
		return c, fmt.Errorf("%w: %s no longer serves its storage version %s", decision.ErrChanged, e.crd.Name, e.gvr.Version)
	case w.Subresource() != "" && !kube.HasStatus(next):
		return c, fmt.Errorf("%w: %s no longer has /status at its storage version %s", decision.ErrChanged, e.crd.Name, e.gvr.Version)
	}
	return resumed, nil
}
