package export

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// DryRun returns a check that applies each manifest as a dry run. It returns an error for an unknown field and for a
// refusal by admission, but not for an object that exists already.
func DryRun(c client.Client) func(ctx context.Context, manifest []byte) error {
	return func(ctx context.Context, manifest []byte) error {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(manifest, &object.Object); err != nil {
			return fmt.Errorf("read the manifest back: %w", err)
		}
		force := true
		options := &client.PatchOptions{
			Force: &force, FieldManager: "godwit-export", DryRun: []string{metav1.DryRunAll}, Raw: &metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict},
		}
		if err := c.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, manifest), options); err != nil {
			return fmt.Errorf("dry run on the API server: %w", err)
		}
		return nil
	}
}
