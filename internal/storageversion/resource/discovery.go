package resource

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a resource as discovery shows it.
type Resource struct {
	// GroupVersionResource is at the version at which objects are read and written.
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
	// Stored means that the API server keeps the objects in its etcd: discovery has a hash of their
	// storage version.
	Stored bool
	// Aggregated is the service of the API server that serves the resource; empty for the API server itself.
	Aggregated string
	// Custom means that a CRD defines the resource.
	Custom bool
	verbs  metav1.Verbs
}

// Name is the resource as kubectl takes it.
func (r Resource) Name() string { return r.GroupResource().String() }

// expires reports whether the API server deletes objects by itself some time after their last write.
func (r Resource) expires() bool {
	return r.Resource == "events" && (r.Group == "" || r.Group == "events.k8s.io")
}

// writable reports whether a pass can list and patch the objects.
func (r Resource) writable() bool {
	return slices.Contains(r.verbs, "list") && slices.Contains(r.verbs, "patch")
}

// eligible reports whether a run of all resources includes this one.
func (r Resource) eligible() bool {
	return r.Stored && r.Aggregated == "" && !r.expires() && r.writable()
}

// Catalog is what the API server serves.
type Catalog struct {
	resources []named
	// failed are the group versions whose resources were not listed, with the answer.
	failed   map[schema.GroupVersion]error
	services map[schema.GroupVersion]apiService
}

// named is a resource with its other names.
type named struct {
	Resource
	names     []string
	preferred bool
}

// Find returns the resource that an argument names as kubectl's do: resource, resource.group or
// resource.version.group. A resource is a plural, a singular or a short name. Where several groups have
// it, the first group in discovery wins.
func (c Catalog) Find(argument string) (Resource, bool) {
	exact, byGroup := schema.ParseResourceArg(strings.ToLower(argument))
	for _, n := range c.resources {
		if exact != nil && n.Group == exact.Group && n.Version == exact.Version && slices.Contains(n.names, exact.Resource) {
			return n.Resource, true
		}
	}
	var found *Resource
	for i, n := range c.resources {
		if !slices.Contains(n.names, byGroup.Resource) || byGroup.Group != "" && n.Group != byGroup.Group {
			continue
		}
		if found == nil || n.Group == found.Group && n.preferred {
			found = &c.resources[i].Resource
		}
	}
	if found == nil {
		return Resource{}, false
	}
	return *found, true
}

// All returns the resources that a run can rewrite, each once and at the preferred version, in the order of their names.
func (c Catalog) All() []Resource {
	byName := map[string]Resource{}
	var names []string
	for _, n := range c.resources {
		if _, have := byName[n.Name()]; n.eligible() && (!have || n.preferred) {
			byName[n.Name()] = n.Resource
			names = append(names, n.Name())
		}
	}
	slices.Sort(names)
	var all []Resource
	for _, name := range slices.Compact(names) {
		all = append(all, byName[name])
	}
	return all
}

// Names returns the names of all resources, each with its group.
func (c Catalog) Names() []string {
	var names []string
	for _, n := range c.resources {
		names = append(names, n.Name())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// version is a version of a group that the API server names.
type version struct {
	schema.GroupVersion
	preferred bool
}

func namedOf(v version, one metav1.APIResource, s apiService) named {
	return named{
		Resource: Resource{
			GroupVersionResource: v.WithResource(one.Name), Kind: one.Kind, Namespaced: one.Namespaced,
			Stored: one.StorageVersionHash != "", Aggregated: s.service, Custom: s.custom, verbs: one.Verbs,
		},
		names:     append([]string{one.Name, one.SingularName}, one.ShortNames...),
		preferred: v.preferred,
	}
}

// apiService says who serves a version of a group.
type apiService struct {
	service string
	custom  bool
}

const (
	// managedLabel is on the APIServices that the API server makes by itself. Those of CRDs, which come and go,
	// have the value ofCRDs; those of its own groups have onstart.
	managedLabel = "kube-aggregator.kubernetes.io/automanaged"
	ofCRDs       = "true"
)

// apiServiceList lists APIServices.
var apiServiceList = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
