package resource

import (
	"strings"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// Each fix is a function of the names in it, as those of package decision: a finding calls it with those of its resource, and the
// reason of the finding with placeholders.

// DidYouMean names resources with similar names.
func DidYouMean(names ...string) godwit.Fix {
	return godwit.Do("did you mean " + strings.Join(names, " or ") + "?")
}

func listResources() godwit.Fix {
	return godwit.Do("list the resources, as in `kubectl api-resources`, and correct the name")
}

func leaveOut() godwit.Fix { return godwit.Do("leave the resource out") }

func nameParent(resource string) godwit.Fix { return godwit.Do("name " + resource) }

func seeDocumentation(apiservice string) godwit.Fix {
	return godwit.Do("see in the documentation of that API server how it stores objects", show(apiservice))
}

func keepKey() godwit.Fix {
	return godwit.Do("leave the resource out, and keep the old key for as long as --event-ttl of kube-apiserver says")
}

func migrateCRD(crd string) godwit.Fix {
	return godwit.Do("migrate the CRD, which also writes every object", godwit.RunMigration{CRD: crd})
}

func seeServer(apiservice string) godwit.Fix {
	return godwit.Do("see which server is down", show(apiservice))
}

func show(apiservice string) godwit.Show {
	return godwit.Show{Object: godwit.Object{Resource: "apiservice", Name: apiservice}}
}

func loadConfiguration() godwit.Fix {
	return godwit.Do("give it the configuration, and restart it unless it reloads it: the run waits, and writes nothing before")
}

// BindMonitoring lets a user read the metrics that show which configuration an API server has loaded.
func BindMonitoring(user string) godwit.Fix {
	return godwit.Do("bind the ClusterRole system:monitoring to " + user)
}

func distributeKey() godwit.Fix {
	return godwit.Do("give every API server the key with which the object was written, which may be one that was removed too early").Then("plan again")
}

// bringUp is the fix for a webhook that does not answer. The configuration is known only for the conversion webhook of a CRD.
func bringUp(user string, by apierror.Origin, resource Resource) godwit.Fix {
	if by.Kind == apierror.Conversion {
		return decision.BringUpConversion(resource.Name())
	}
	return decision.BringUp(decision.AllWebhooks).Or(decision.ExemptFrom(user, by))
}

// keepForm is a run that leaves the objects as they are that the API server refuses to write.
func keepForm() godwit.Fix {
	return godwit.Do("list all such objects by --dry-run=server, and write the others by --accept-denials: these keep the form that they have")
}
