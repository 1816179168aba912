// Package crds installs the CRDs of the kinds that are checked.
package crds

import (
	"context"
	"fmt"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/manifest"
	"github.com/godwit-dev/godwit/externalname/crossplane/conformance/internal/wait"
)

// Install creates the CRDs that do not exist, and waits until they are served.
func Install(ctx context.Context, config *rest.Config, list []*unstructured.Unstructured, timeout time.Duration) error {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	for _, crd := range list {
		if err := c.Create(ctx, crd.DeepCopy()); err != nil && !kerrors.IsAlreadyExists(err) {
			return fmt.Errorf("create CRD %s: %w", crd.GetName(), err)
		}
		err := wait.Until(ctx, timeout, func() (bool, error) {
			live := crd.DeepCopy()
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), live); err != nil {
				return false, err
			}
			return manifest.ConditionOf(live, "Established").Status == "True", nil
		})
		if err != nil {
			return fmt.Errorf("wait until CRD %s is established: %w", crd.GetName(), err)
		}
	}
	return nil
}
