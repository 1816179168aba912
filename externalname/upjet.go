package externalname

import (
	"context"
	"fmt"
)

// UpjetNameFunc has the type of Upjet's config.GetExternalNameFn.
type UpjetNameFunc = func(tfstate map[string]any) (string, error)

// UpjetIDFunc has the type of Upjet's config.GetIDFn.
type UpjetIDFunc = func(ctx context.Context, externalName string, parameters, terraformProviderConfig map[string]any) (string, error)

// UpjetKind relates the external names of a kind that Upjet generates to Terraform.
type UpjetKind[K any] struct {
	// Names is the form of the external names, with the legacy forms that objects may still have. Upjet does not say what
	// the managed resource is called, so [LegacyObjectName] accepts no name here: use [LegacyHint].
	Names Scheme[K]
	// KeyOf reads the key from the Terraform state, whose attributes have the names of Terraform.
	KeyOf func(tfstate map[string]any) (K, error)
	// IDOf returns the Terraform ID of a key.
	IDOf func(key K) (string, error)
	// KeyInParameters means that KeyOf can read the key from the parameters of the spec as well, because the user
	// determines it. A key that can't become a name is refused before the resource is created.
	KeyInParameters bool
	// KeyOfHint returns the key of a legacy name that does not identify the resource by itself, with the help of the
	// parameters of the spec and the configuration of the Terraform provider. Legacy forms of [ContentHint] need it.
	KeyOfHint func(hint string, parameters, terraformProviderConfig map[string]any) (K, error)
}

// ForUpjet returns the two functions with which an Upjet provider writes and reads external names, for the fields
// GetExternalNameFn and GetIDFn of Upjet's config.ExternalName.
//
// The first returns the canonical name of the key in the Terraform state. Upjet calls it at each observation, and so
// replaces a legacy name by the canonical one.
//
// The second returns the Terraform ID of a name in any form of the scheme. A new resource has no name, and gets an
// empty ID: Terraform reads it as a resource that does not exist. A name that no form accepts is an error, which Upjet
// reports before it calls the external system.
func ForUpjet[K any](kind UpjetKind[K]) (UpjetNameFunc, UpjetIDFunc) {
	name := func(tfstate map[string]any) (string, error) {
		key, err := kind.KeyOf(tfstate)
		if err != nil {
			return "", fmt.Errorf("read the key from the Terraform state: %w", err)
		}
		return kind.Names.Codec.Format(key)
	}
	id := func(_ context.Context, externalName string, parameters, config map[string]any) (string, error) {
		// Upjet does not pass the name of the managed resource.
		reading, err := kind.Names.Read(externalName, "")
		switch {
		case err != nil:
			return "", err
		case reading.Class == Empty:
			return "", kind.checkParameters(parameters)
		case reading.HasKey():
			return kind.IDOf(reading.Key)
		case reading.Content == ContentHint && kind.KeyOfHint != nil:
			key, err := kind.KeyOfHint(reading.Text, parameters, config)
			if err != nil {
				return "", fmt.Errorf("complete the legacy name %q: %w", externalName, err)
			}
			if _, err := kind.Names.Codec.Format(key); err != nil {
				return "", fmt.Errorf("complete the legacy name %q: %w", externalName, err)
			}
			return kind.IDOf(key)
		}
		return "", fmt.Errorf("external name %q has the legacy form %s, and does not identify the resource by itself", externalName, reading.Form)
	}
	return name, id
}

// checkParameters refuses parameters whose key can't become a name. Terraform reports a missing parameter itself.
func (k UpjetKind[K]) checkParameters(parameters map[string]any) error {
	if !k.KeyInParameters {
		return nil
	}
	key, err := k.KeyOf(parameters)
	if err != nil {
		return nil //nolint:nilerr // A parameter is missing.
	}
	if _, err := k.Names.Codec.Format(key); err != nil {
		return fmt.Errorf("read the key from the parameters: %w", err)
	}
	return nil
}
