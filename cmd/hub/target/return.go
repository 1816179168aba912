package target

import (
	"context"
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/objectname"
)

// keepReturn creates the KlusterletConfig and the Secret with which the import controller configures the klusterlet
// with the kubeconfigs of both hubs. With only the kubeconfig of this hub, the klusterlet could not leave when this hub
// stops accepting the cluster. user is the KlusterletConfig that the user has chosen, if any.
func (h Hub) keepReturn(ctx context.Context, name, user string, kubeconfig []byte, isNew bool) error {
	secret := &unstructured.Unstructured{Object: map[string]any{
		"data": map[string]any{cluster.KubeconfigKey: base64.StdEncoding.EncodeToString(kubeconfig)},
	}}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	key := client.ObjectKeyFromObject(h.BootstrapSecret(objectname.Return(name)))
	secret.SetNamespace(key.Namespace)
	secret.SetName(key.Name)
	config := cluster.KlusterletConfig(objectname.Return(name))
	spec, err := cluster.TwoHubs{User: user, Secret: key.Name, Reconnect: h.Reconnect}.Spec(ctx, h.Client)
	if err != nil {
		return fmt.Errorf("make KlusterletConfig %s: %w", config.GetName(), err)
	}
	config.Object["spec"] = spec
	for _, o := range []*unstructured.Unstructured{secret, config} {
		if err := h.own(o); err != nil {
			return err
		}
		if _, err := h.write(ctx, o, isNew); err != nil {
			return err
		}
	}
	return nil
}

// removeReturn deletes the objects that keepReturn has created, if they exist.
func (h Hub) removeReturn(ctx context.Context, name string) error {
	for _, o := range []client.Object{cluster.KlusterletConfig(objectname.Return(name)), h.BootstrapSecret(objectname.Return(name))} {
		found, err := h.FindOwned(ctx, o)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if err := cluster.Delete(ctx, h.Client, o); err != nil {
			return fmt.Errorf("delete %s: %w", cluster.Name(h.Client, o), err)
		}
	}
	return nil
}
