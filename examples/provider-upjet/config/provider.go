// Package config configures Upjet for the provider.
//
// names.go has the external names, provider.go the provider, and template.go what differs from Upjet's controllers.
package config

import (
	"encoding/json"
	"fmt"

	"github.com/crossplane/upjet/v2/pkg/config"

	"github.com/godwit-dev/godwit/examples/provider-upjet/terraform"
)

// module is the path of the module.
const module = "github.com/godwit-dev/godwit/examples/provider-upjet"

// Provider returns the configuration, for the generator and for the program.
func Provider() (*config.Provider, error) {
	provider := terraform.Provider()
	// Upjet reads the names of the resources from the output of `terraform providers schema -json`, and their schemas
	// from the Go package.
	type block struct {
		Attributes map[string]any `json:"attributes"`
	}
	type resource struct {
		Version int   `json:"version"`
		Block   block `json:"block"`
	}
	resources := map[string]resource{}
	descriptions := map[string]any{} // Upjet reads them from the pages of the Terraform provider.
	included := []string{}
	for name, of := range provider.ResourcesMap {
		descriptions[name] = map[string]string{"name": name, "title": name, "description": of.Description}
		resources[name] = resource{Block: block{Attributes: map[string]any{"id": map[string]any{"type": "string", "computed": true}}}}
		included = append(included, "^"+name+"$")
	}
	schema, err := json.Marshal(map[string]any{
		"format_version":   "1.0",
		"provider_schemas": map[string]any{"example.org/godwit/store": map[string]any{"resource_schemas": resources}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the schema of the Terraform provider: %w", err)
	}
	metadata, err := json.Marshal(map[string]any{"name": "store", "resources": descriptions})
	if err != nil {
		return nil, fmt.Errorf("encode the descriptions of the kinds: %w", err)
	}
	p := config.NewProvider(schema, "store", module, metadata,
		config.WithRootGroup("example.org"),
		config.WithShortName("store"),
		config.WithIncludeList(nil),
		config.WithTerraformPluginSDKIncludeList(included),
		config.WithTerraformProvider(provider),
		config.WithFeaturesPackage("internal/features"),
		config.WithBasePackages(config.BasePackages{}),
		config.WithControllerTemplate(controllerTemplate),
		config.WithDefaultResourceOptions(func(r *config.Resource) {
			r.ExternalName = kinds[r.Name].externalName
			// Upjet's default is asynchronous. The example has both.
			r.UseAsync = r.Name == "store_volume"
		}),
	)
	p.ConfigureResources()
	return p, nil
}
