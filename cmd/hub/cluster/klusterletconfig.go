package cluster

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KlusterletConfig returns a KlusterletConfig without its spec.
func KlusterletConfig(name string) *unstructured.Unstructured {
	config := &unstructured.Unstructured{}
	config.SetGroupVersionKind(KlusterletConfigKind)
	config.SetName(name)
	return config
}

// Imports reports whether the import controller of the hub configures klusterlets, as KlusterletConfigs say. On another hub, a ManifestWork of
// the migration configures them: see package klusterlet.
func (h Hub) Imports() (bool, error) {
	kind, err := h.served(KlusterletConfigKind.GroupKind())
	return kind != nil, err
}

// TwoHubs are the kubeconfigs of a klusterlet that may change hubs.
type TwoHubs struct {
	// User is the name of the KlusterletConfig that the user has chosen, if any. Its settings are kept, such as the
	// proxy to the hubs.
	User string
	// Secret has the kubeconfig of the other hub.
	Secret string
	// Reconnect is how long the klusterlet tries to reach a hub before it tries the other one.
	Reconnect time.Duration
}

// Spec returns the spec of a KlusterletConfig that adds the other hub's kubeconfig to that of the hub itself.
func (t TwoHubs) Spec(ctx context.Context, c client.Reader) (map[string]any, error) {
	spec := map[string]any{}
	if t.User != "" {
		theirs := KlusterletConfig(t.User)
		if err := client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(theirs), theirs)); err != nil {
			return nil, err
		}
		if found, ok, _ := unstructured.NestedMap(theirs.Object, "spec"); ok {
			spec = found
		}
	}
	spec["multipleHubsConfig"] = map[string]any{
		"genBootstrapKubeConfigStrategy": "IncludeCurrentHub",
		"bootstrapKubeConfigs": map[string]any{
			"type": "LocalSecrets",
			"localSecretsConfig": map[string]any{
				"kubeConfigSecrets":           []any{map[string]any{"name": t.Secret}},
				"hubConnectionTimeoutSeconds": int64(t.Reconnect / time.Second),
			},
		},
	}
	return spec, nil
}
