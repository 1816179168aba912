package config

import (
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/upjet/v2/pkg/config"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/crossplane/existing"
)

// folder is the key of a folder.
type folder struct{ Bucket, Name string }

// FolderNames are the external names of folders: the bucket and the name, where older objects have the name alone.
var FolderNames = externalname.Scheme[folder]{
	Codec: externalname.Compound(
		externalname.Field("bucket", func(k *folder) *string { return &k.Bucket }, noColon),
		externalname.Field("name", func(k *folder) *string { return &k.Name }, noColon),
	),
	Legacy: []externalname.Form[folder]{externalname.LegacyHint[folder]("NameOnly", externalname.Text(noColon))},
}

// noColon holds for parts of the Terraform ID of a folder, which joins them with a colon.
var noColon = externalname.Check("text without a colon", func(text string) bool { return !strings.Contains(text, ":") })

// BucketNames and VolumeNames are the external names of the other kinds.
var (
	BucketNames = externalname.Scheme[string]{Codec: externalname.Text()}
	VolumeNames = externalname.Scheme[string]{Codec: externalname.GUID()}
)

// kinds are the kinds of the provider, by the name of their Terraform resource.
var kinds = map[string]kind{
	// The identifier comes from the provider.
	"store_volume": kindOf(externalname.UpjetKind[string]{
		Names: VolumeNames,
		KeyOf: func(tfstate map[string]any) (string, error) { return text(tfstate, "id") },
		IDOf:  func(key string) (string, error) { return key, nil },
	}),
	// A parameter is the identifier.
	"store_bucket": kindOf(externalname.UpjetKind[string]{
		Names:           BucketNames,
		KeyOf:           func(tfstate map[string]any) (string, error) { return text(tfstate, "name") },
		IDOf:            func(key string) (string, error) { return key, nil },
		KeyInParameters: true,
	}, "name"),
	// The Terraform ID is a template: {{ .parameters.bucket }}:{{ .external_name }}.
	"store_folder": kindOf(externalname.UpjetKind[folder]{
		Names: FolderNames,
		KeyOf: func(tfstate map[string]any) (folder, error) {
			bucket, err := text(tfstate, "bucket")
			if err != nil {
				return folder{}, err
			}
			name, err := text(tfstate, "name")
			return folder{Bucket: bucket, Name: name}, err
		},
		IDOf: func(key folder) (string, error) { return key.Bucket + ":" + key.Name, nil },
		KeyOfHint: func(hint string, parameters, _ map[string]any) (folder, error) {
			bucket, err := text(parameters, "bucket")
			return folder{Bucket: bucket, Name: hint}, err
		},
		KeyInParameters: true,
	}, "bucket", "name"),
}

func text(values map[string]any, field string) (string, error) {
	value, ok := values[field].(string)
	if !ok {
		return "", fmt.Errorf("there is no %s", field)
	}
	return value, nil
}

// kind is what Upjet and the contract need of a kind.
type kind struct {
	externalName config.ExternalName
	// contract returns the options of the contract for a connector. It adds the names of the kind to the argument.
	contract func(existing.Kind[struct{}]) options
}

type options func(ctrl.Manager, managed.InitializerChain) ([]managed.ReconcilerOption, error)

func kindOf[K any](of externalname.UpjetKind[K], identifiers ...string) kind {
	name, id := externalname.ForUpjet(of)
	return kind{
		externalName: config.ExternalName{
			// The user writes the parameters that identify a resource, and Create writes the external name.
			SetIdentifierArgumentFn: config.NopSetIdentifierArgument,
			DisableNameInitializer:  true,
			IdentifierFields:        identifiers,
			GetExternalNameFn:       name,
			GetIDFn:                 id,
		},
		contract: func(k existing.Kind[struct{}]) options {
			resource := existing.WrapConnector(existing.Kind[K]{
				Kind: k.Kind, Names: of.Names, Connector: k.Connector, Creations: k.Creations, Forget: k.Forget,
			})
			return func(m ctrl.Manager, initializers managed.InitializerChain) ([]managed.ReconcilerOption, error) {
				resource.Initializers = initializers
				return resource.Options(m, event.NewAPIRecorder(m.GetEventRecorderFor(managed.ControllerName(k.Kind.String()))))
			}
		},
	}
}
