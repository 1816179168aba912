package lineage

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/godwit-dev/godwit/internal/format"
)

// CheckFormat refuses a revision whose annotations a newer release of Godwit wrote: its lineage is
// unknown.
func CheckFormat(r *appsv1.ControllerRevision) error {
	return format.CheckObject(fmt.Sprintf("controllerrevision %s/%s", r.Namespace, r.Name), r)
}
