package externalname

import (
	"context"
	"fmt"
)

// UpjetNameFunc has the type of Upjet's config.GetExternalNameFn.
type UpjetNameFunc = func(tfstate map[string]any) (string, error)

// UpjetIDFunc has the type of Upjet's config.GetIDFn.
type UpjetIDFunc = func(ctx context.Context, externalName string, parameters, terraformProviderConfig map[string]any) (string, error)

// ForUpjet returns the two functions with which an Upjet provider writes and reads external names. The first returns
// the name of the key that keyOf reads from the Terraform state. The second returns the Terraform ID of a name, with
// idOf; it returns an error for a name that is not canonical.
func ForUpjet[K any](
	codec Codec[K], keyOf func(tfstate map[string]any) (K, error), idOf func(K) (string, error),
) (UpjetNameFunc, UpjetIDFunc) {
	name := func(tfstate map[string]any) (string, error) {
		key, err := keyOf(tfstate)
		if err != nil {
			return "", fmt.Errorf("read the key from the Terraform state: %w", err)
		}
		return codec.Format(key)
	}
	id := func(_ context.Context, externalName string, _, _ map[string]any) (string, error) {
		key, err := codec.Parse(externalName)
		if err != nil {
			return "", err
		}
		return idOf(key)
	}
	return name, id
}
