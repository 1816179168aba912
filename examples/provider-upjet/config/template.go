package config

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/upjet/v2/pkg/controller"
	"github.com/crossplane/upjet/v2/pkg/pipeline/templates"
	"github.com/crossplane/upjet/v2/pkg/terraform"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/godwit-dev/godwit/examples/provider-upjet/internal/features"
	"github.com/godwit-dev/godwit/externalname/crossplane/existing"
)

// controllerTemplate is Upjet's template with the options of the contract after all others.
var controllerTemplate = replaced(templates.ControllerTemplate,
	"\t\"github.com/crossplane/upjet/v2/pkg/metrics\"\n", "\t\"github.com/crossplane/upjet/v2/pkg/metrics\"\n\tproviderconfig \""+module+"/config\"\n",
	"\topts := []managed.ReconcilerOption{\n", "\tvar generated providerconfig.Generated\n\topts := []managed.ReconcilerOption{\n",
	"WithTerraformPluginSDKAsyncCallbackProvider(ac)", "WithTerraformPluginSDKAsyncCallbackProvider(generated.Callbacks(ac))",
	"managed.WithExternalConnecter(", "generated.Connector(",
	"managed.WithInitializers(", "generated.Initializers(",
	"\tr := managed.NewReconciler(", "\tcontract, err := providerconfig.Contract(mgr, o, \"{{ .ResourceType }}\", {{ .TypePackageAlias }}{{ .CRD.Kind }}_GroupVersionKind, &generated)\n"+
		"\tif err != nil {\n\t\treturn err\n\t}\n\topts = append(opts, contract...)\n\tr := managed.NewReconciler(",
)

// replaced replaces each old text, which must be there once, by the new one after it.
func replaced(text string, oldNew ...string) string {
	for i := 0; i < len(oldNew); i += 2 {
		if n := strings.Count(text, oldNew[i]); n != 1 {
			panic(fmt.Sprintf("Upjet's template has %q %d times, and once is expected", oldNew[i], n))
		}
		text = strings.Replace(text, oldNew[i], oldNew[i+1], 1)
	}
	return text
}

// Generated is what the contract needs of a generated controller.
type Generated struct {
	connector    managed.ExternalConnector
	initializers managed.InitializerChain
	// creations is set for an asynchronous kind.
	creations *existing.Creations
}

// Connector keeps the connector of the controller.
func (g *Generated) Connector(connector managed.ExternalConnector) managed.ReconcilerOption {
	g.connector = connector
	return managed.WithExternalConnector(connector)
}

// Initializers keeps those of the configuration, such as one that adds tags.
func (g *Generated) Initializers(chain managed.InitializerChain) managed.ReconcilerOption {
	g.initializers = chain
	return managed.WithInitializers(chain)
}

// Callbacks records how asynchronous creations end.
func (g *Generated) Callbacks(next controller.CallbackProvider) controller.CallbackProvider {
	g.creations = &existing.Creations{}
	return callbacks{CallbackProvider: next, creations: g.creations}
}

type callbacks struct {
	controller.CallbackProvider

	creations *existing.Creations
}

func (c callbacks) Create(name types.NamespacedName, requestReconcile bool) terraform.CallbackFn {
	next := c.CallbackProvider.Create(name, requestReconcile)
	return func(err error, ctx context.Context) error {
		c.creations.Ended(name, err)
		return next(err, ctx)
	}
}

// Contract returns the options with which a generated controller follows the contract.
func Contract(m ctrl.Manager, o controller.Options, name string, kind schema.GroupVersionKind, g *Generated) ([]managed.ReconcilerOption, error) {
	if !o.Features.Enabled(features.Contract) {
		return nil, nil
	}
	follows := kinds[name].contract(existing.Kind[struct{}]{
		Kind: kind, Connector: g.connector, Creations: g.creations, Forget: o.OperationTrackerStore.RemoveTracker,
	})
	return follows(m, g.initializers)
}
