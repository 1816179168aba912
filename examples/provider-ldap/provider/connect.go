package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/godwit-dev/godwit/examples/provider-ldap/api/v1"
	"github.com/godwit-dev/godwit/examples/provider-ldap/directory"
	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// Directory returns a client of the directory of a managed resource. It sends no request to the directory.
type Directory func(ctx context.Context, mg resource.ModernManaged) (*directory.Client, error)

// Configured returns the directory that the ProviderConfig of the object describes.
func Configured(c client.Reader) Directory {
	return func(ctx context.Context, mg resource.ModernManaged) (*directory.Client, error) {
		ref := mg.GetProviderConfigReference()
		if ref == nil || ref.Kind != "ProviderConfig" {
			return nil, errors.New("spec.providerConfigRef: this provider needs kind: ProviderConfig, in the namespace of the object")
		}
		config, err := ConfigOf(ctx, c, types.NamespacedName{Namespace: mg.GetNamespace(), Name: ref.Name})
		if err != nil {
			return nil, err
		}
		return directory.New(config), nil
	}
}

// ConfigOf reads a ProviderConfig and its password.
func ConfigOf(ctx context.Context, c client.Reader, key types.NamespacedName) (directory.Config, error) {
	config := &v1.ProviderConfig{}
	if err := c.Get(ctx, key, config); err != nil {
		return directory.Config{}, fmt.Errorf("read ProviderConfig %s: %w", key, err)
	}
	ref := config.Spec.PasswordSecretRef
	secret := &corev1.Secret{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: ref.Name}, secret); err != nil {
		return directory.Config{}, fmt.Errorf("read the password of ProviderConfig %s: %w", key, err)
	}
	password, ok := secret.Data[ref.Key]
	if !ok {
		return directory.Config{}, fmt.Errorf("read the password of ProviderConfig %s: Secret %s has no key %s", key, ref.Name, ref.Key)
	}
	s := config.Spec
	return directory.Config{URL: s.URL, BaseDN: s.BaseDN, BindDN: s.BindDN, Password: string(password)}, nil
}

// differences compares the fields of two structs by their JSON names. An empty field of the spec means that the entry has no value.
func differences(desired, observed any) []crossplane.Difference {
	want, have := fields(desired), fields(observed)
	names := maps.Clone(want)
	maps.Copy(names, have)
	var list []crossplane.Difference
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if want[name] != have[name] {
			list = append(list, crossplane.Difference{Field: name, Desired: want[name], Observed: have[name]})
		}
	}
	return list
}

// fields returns the fields of a struct of strings by their JSON names.
func fields(of any) map[string]string {
	list := map[string]string{}
	if data, err := json.Marshal(of); err == nil {
		_ = json.Unmarshal(data, &list) // The caller compares fields of other types.
	}
	return list
}
