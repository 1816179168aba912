// Package resource says which objects of a managed cluster move with it. The same rules
// select what the source collects and what the target accepts: an object that no rule names
// is refused from every sender. Users add rules of their own; the package does no I/O.
package resource

import (
	"fmt"
	"slices"
	"strings"
)

// Annotations that pause the controllers of Hive and of metal3.
const (
	PauseDeployment = "hive.openshift.io/reconcile-pause"
	PauseHost       = "baremetalhost.metal3.io/paused"
)

// SecretFinalizer is set by metal3 on a Secret to which a BareMetalHost refers.
const SecretFinalizer = "baremetalhost.metal3.io/secret"

// ClusterName stands in a rule for the name of the cluster.
const ClusterName = "{cluster}"

// Rule names objects of one kind. Every condition that is set must hold.
type Rule struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	// Names are the names that objects may have, with {cluster} for the name of the cluster;
	// any name if there are none.
	Names []string `json:"names,omitempty"`
	// Annotation or Label that an object must have, with any value.
	Annotation string `json:"annotation,omitempty"`
	Label      string `json:"label,omitempty"`
	// ClusterScoped is true for a kind without a namespace. All other objects are in the
	// namespace of the cluster.
	ClusterScoped bool `json:"clusterScoped,omitempty"`
	// Status is moved as well, since the controller of the kind would begin anew without it.
	Status bool `json:"status,omitempty"`
	// Pause is the annotation by which the controller of the kind leaves an object alone. It
	// is set before an object is collected, and removed when the cluster has moved.
	Pause string `json:"pause,omitempty"`
	// Finalizers deprovision what the object stands for. They are removed, while the object is
	// paused, before an object of a cluster that lives on is deleted.
	Finalizers []string `json:"finalizers,omitempty"`
	// SetLabels and SetAnnotations tell the controller of the kind on the target hub that the
	// object is restored, and not new.
	SetLabels      map[string]string `json:"setLabels,omitempty"`
	SetAnnotations map[string]string `json:"setAnnotations,omitempty"`
	// References are further objects that move with one of this kind.
	References []ReferencePath `json:"references,omitempty"`
}

// ReferencePath is where an object names a Secret or a ConfigMap of its namespace. A field
// that ends in [] is a list.
type ReferencePath struct {
	Kind string `json:"kind"`
	// Path of the name, as spec.bmc.credentialsName or spec.extraManifestsRefs[].name.
	Path string `json:"path"`
}

// Rules that move a cluster as global hub does. Objects of other rules, such as credentials
// that a BareMetalHost names, are found by the references in these.
func Rules() []Rule {
	const (
		ocm      = "cluster.open-cluster-management.io"
		metal3   = "metal3.io"
		syncWave = "siteconfig.open-cluster-management.io/sync-wave"
		preserve = "siteconfig.open-cluster-management.io/preserve"
	)
	return []Rule{
		{Kind: "Secret", Names: []string{
			ClusterName + "-admin-password", ClusterName + "-admin-kubeconfig", ClusterName + "-metadata-json", ClusterName + "-seed-reconfiguration",
		}},
		{Kind: "Secret", Annotation: syncWave},
		{Kind: "Secret", Label: preserve},
		{Kind: "ConfigMap", Label: preserve},
		{Group: ocm, Kind: "ManagedCluster", Names: []string{ClusterName}, ClusterScoped: true},
		{Group: "agent.open-cluster-management.io", Kind: "KlusterletAddonConfig", Names: []string{ClusterName}},
		{
			Group: metal3, Kind: "BareMetalHost", Status: true, Pause: PauseHost, Finalizers: []string{"baremetalhost.metal3.io"},
			References: []ReferencePath{
				{"Secret", "spec.bmc.credentialsName"}, {"Secret", "spec.userData.name"}, {"Secret", "spec.networkData.name"},
				{"Secret", "spec.metaData.name"}, {"Secret", "spec.preprovisioningNetworkDataName"},
			},
		},
		{Group: metal3, Kind: "HostFirmwareSettings", Status: true},
		{Group: metal3, Kind: "FirmwareSchema"},
		{Group: metal3, Kind: "HostFirmwareComponents", Status: true},
		{Group: metal3, Kind: "DataImage", Status: true, Finalizers: []string{"dataimage.metal3.io"}},
		{
			// Its controller has no pause, and takes an object with this label for one that has installed
			// its cluster already.
			Group: "extensions.hive.openshift.io", Kind: "ImageClusterInstall", Status: true,
			Finalizers:     []string{"imageclusterinstall.agent.open-cluster-management.io/deprovision"},
			SetLabels:      map[string]string{"velero.io/restore-name": "godwit"},
			SetAnnotations: map[string]string{"velero.io/restore-status": "true"},
			References:     []ReferencePath{{"ConfigMap", "spec.extraManifestsRefs[].name"}},
		},
		{
			Group: "hive.openshift.io", Kind: "ClusterDeployment", Status: true, Pause: PauseDeployment,
			Finalizers: []string{"hive.openshift.io/deprovision"},
			References: []ReferencePath{
				{"Secret", "spec.pullSecretRef.name"}, {"ConfigMap", "spec.provisioning.manifestsConfigMapRef.name"},
				{"Secret", "spec.clusterMetadata.adminKubeconfigSecretRef.name"}, {"Secret", "spec.clusterMetadata.adminPasswordSecretRef.name"},
			},
		},
	}
}

// RefusedError is an object that must not be applied, with the reason.
type RefusedError struct {
	Cluster, Object, Why string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s of cluster %s is refused: %s", e.Object, e.Cluster, e.Why)
}

// object is what the rules read of an object: its keys as they are, since a decoder into a
// struct would take "Kind" for "kind", and an API server does not.
type object map[string]any

func (o object) text(key string) string { text, _ := o[key].(string); return text }

func (o object) part(key string) object { part, _ := o[key].(map[string]any); return part }

// group of the object; empty for the core group.
func (o object) group() string {
	group, _, found := strings.Cut(o.text("apiVersion"), "/")
	if !found {
		return ""
	}
	return group
}

// Reference is a further object of the cluster's namespace that an accepted object names,
// such as the credentials of a BareMetalHost.
type Reference struct{ Kind, Name string }

// Check accepts an object of a cluster, as it is about to be applied, if a rule names it, or
// if it is referred to by one that was accepted. Its metadata must be clean.
func Check(cluster string, content map[string]any, rules []Rule, references []Reference) error {
	o := object(content)
	kind, metadata := o.text("kind"), o.part("metadata")
	name, namespace := metadata.text("name"), metadata.text("namespace")
	refused := func(why string) error {
		return &RefusedError{Cluster: cluster, Object: kind + " " + name, Why: why}
	}
	for _, field := range stripped {
		if _, ok := metadata[field]; ok {
			return refused("metadata." + field + " belongs to the source hub")
		}
	}
	if why := dangerous(cluster, kind, metadata); why != "" {
		return refused(why)
	}
	group := o.group()
	if (kind == "Secret" || kind == "ConfigMap") && group == "" && namespace == cluster && slices.Contains(references, Reference{kind, name}) {
		return nil
	}
	known := false
	for _, r := range rules {
		if r.Group != group || r.Kind != kind {
			continue
		}
		known = true
		if r.matches(cluster, metadata) {
			return nil
		}
	}
	if !known {
		return refused(fmt.Sprintf("no rule names objects of kind %s of group %q", kind, group))
	}
	return refused(fmt.Sprintf("no rule for its kind allows its name, namespace %q, labels and annotations", namespace))
}

const (
	// ownLabels precedes the labels of Godwit, by which agents find what they have stored and created.
	ownLabels = "godwit.dev/"
	// A ManagedCluster with one of these names another cluster of the hub, on which the import
	// controller runs the klusterlet.
	deployMode     = "import.open-cluster-management.io/klusterlet-deploy-mode"
	hostingCluster = "import.open-cluster-management.io/hosting-cluster-name"
	// localCluster is the label of the hub's own ManagedCluster.
	localCluster = "local-cluster"
)

// dangerous says why an object would give its sender more than the cluster that moves, or
// returns nothing. A source hub resolves the Placement of a migration, so that it may choose
// the name of the cluster as well.
func dangerous(cluster, kind string, metadata object) string {
	if Reserved(cluster) {
		return "namespace " + cluster + " is one of the hub's own, and belongs to no managed cluster"
	}
	for label := range metadata.part("labels") {
		if strings.HasPrefix(label, ownLabels) {
			return "label " + label + " is set by agents alone"
		}
	}
	if kind != "ManagedCluster" {
		return ""
	}
	for _, name := range []string{deployMode, hostingCluster} {
		if _, ok := metadata.part("annotations")[name]; ok && metadata.part("annotations").text(name) != "Default" {
			return "annotation " + name + " runs its klusterlet on another cluster of the target hub"
		}
	}
	if _, ok := metadata.part("labels")[localCluster]; ok {
		return "label " + localCluster + " makes it the target hub itself"
	}
	return ""
}

// Reserved reports whether a namespace is one that Kubernetes, OpenShift or Open Cluster
// Management keep for themselves, so that no managed cluster has its name.
func Reserved(namespace string) bool {
	return slices.Contains([]string{"default", "openshift", "multicluster-engine", "hive"}, namespace) ||
		slices.ContainsFunc([]string{"kube-", "openshift-", "open-cluster-management"}, func(prefix string) bool { return strings.HasPrefix(namespace, prefix) })
}

// Matches reports whether the rule names an object of its kind.
func (r Rule) Matches(cluster string, content map[string]any) bool {
	return r.matches(cluster, object(content).part("metadata"))
}

// For returns the first rule that names an object of a cluster.
func For(cluster string, content map[string]any, rules []Rule) (Rule, bool) {
	o := object(content)
	for _, r := range rules {
		if r.Group == o.group() && r.Kind == o.text("kind") && r.matches(cluster, o.part("metadata")) {
			return r, true
		}
	}
	return Rule{}, false
}

// References returns the objects that an object names by the paths of the rules of its
// kind.
func References(content map[string]any, rules []Rule) []Reference {
	o := object(content)
	var found []Reference
	for _, r := range rules {
		if r.Group != o.group() || r.Kind != o.text("kind") {
			continue
		}
		for _, p := range r.References {
			for _, name := range follow(content, strings.Split(p.Path, ".")) {
				if ref := (Reference{p.Kind, name}); !slices.Contains(found, ref) {
					found = append(found, ref)
				}
			}
		}
	}
	return found
}

// follow returns the texts at a path.
func follow(value any, path []string) []string {
	if len(path) == 0 {
		if text, ok := value.(string); ok && text != "" {
			return []string{text}
		}
		return nil
	}
	fields, _ := value.(map[string]any)
	field, isList := strings.CutSuffix(path[0], "[]")
	if !isList {
		return follow(fields[field], path[1:])
	}
	var found []string
	items, _ := fields[field].([]any)
	for _, item := range items {
		found = append(found, follow(item, path[1:])...)
	}
	return found
}

func (r Rule) matches(cluster string, metadata object) bool {
	namespace, name := cluster, metadata.text("name")
	if r.ClusterScoped {
		namespace = ""
	}
	_, annotated := metadata.part("annotations")[r.Annotation]
	_, labelled := metadata.part("labels")[r.Label]
	return name != "" && metadata.text("namespace") == namespace &&
		(len(r.Names) == 0 || slices.ContainsFunc(r.Names, func(n string) bool { return strings.ReplaceAll(n, ClusterName, cluster) == name })) &&
		(r.Annotation == "" || annotated) && (r.Label == "" || labelled)
}

// stripped are the fields of metadata that belong to the hub which has the object.
var stripped = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
	"selfLink", "managedFields", "ownerReferences", "finalizers",
}

// lastApplied is the annotation of kubectl apply, which has the object once more.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Clean removes what belongs to the hub that has the object: identity, owners, finalizers,
// and of a ManagedCluster the addresses by which the hub reaches it. It changes the object.
func Clean(o map[string]any) {
	metadata, _ := o["metadata"].(map[string]any)
	for _, field := range stripped {
		delete(metadata, field)
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		delete(annotations, lastApplied)
	}
	if spec, ok := o["spec"].(map[string]any); ok && o["kind"] == "ManagedCluster" {
		delete(spec, "managedClusterClientConfigs")
	}
}
