// Package resource has the rules that select which objects move with a managed cluster. The same rules select what the
// source collects and what the target accepts: the target refuses an object without a rule from every sender. Users can
// add rules. The package does no I/O.
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

// ClusterName is the placeholder in a rule for the name of the cluster.
const ClusterName = "{cluster}"

// Rule selects objects of one kind. An object must match every condition that is set.
type Rule struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	// Names are the allowed names of objects, with {cluster} for the name of the cluster; empty allows any name.
	Names []string `json:"names,omitempty"`
	// Annotation and Label must exist on an object, with any value.
	Annotation string `json:"annotation,omitempty"`
	Label      string `json:"label,omitempty"`
	// Users selects only what a user has made, and not what Kubernetes, OpenShift or Open Cluster Management make in each
	// namespace or for each cluster.
	Users bool `json:"users,omitempty"`
	// ClusterScoped is true for a kind without a namespace. Objects of other kinds are in the namespace of the cluster.
	ClusterScoped bool `json:"clusterScoped,omitempty"`
	// Status moves the status too: without it, the controller of the kind would start from the beginning.
	Status bool `json:"status,omitempty"`
	// Pause is the annotation that pauses the controller of the kind. It is set before an object is collected, and
	// removed when the cluster has moved.
	Pause string `json:"pause,omitempty"`
	// Finalizers are those that deprovision the host or the cluster of the object. They are removed from a paused
	// object before its deletion, because the cluster continues to run.
	Finalizers []string `json:"finalizers,omitempty"`
	// SetLabels and SetAnnotations mark the object on the target hub as restored and not new, for the controller of the
	// kind.
	SetLabels      map[string]string `json:"setLabels,omitempty"`
	SetAnnotations map[string]string `json:"setAnnotations,omitempty"`
	// References are the paths to further objects that move with an object of this kind.
	References []ReferencePath `json:"references,omitempty"`
}

// ReferencePath is the path of a reference to a Secret or a ConfigMap in the same namespace. A field that ends in [] is
// a list.
type ReferencePath struct {
	Kind string `json:"kind"`
	// Path is the path of the name, such as spec.bmc.credentialsName or spec.extraManifestsRefs[].name.
	Path string `json:"path"`
}

// Rules returns the rules that multicluster-global-hub uses too. References in the rules select further objects, such
// as the credentials of a BareMetalHost.
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
			// Its controller has no pause. It treats an object with this label as one whose cluster is already
			// installed.
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

// WithUserObjects returns the rules and those that select the Secrets and ConfigMaps of users. These come first, so that
// they are applied before what refers to them, and deleted after it.
func WithUserObjects(rules []Rule) []Rule {
	users := []Rule{{Kind: "Secret", Users: true, Finalizers: []string{SecretFinalizer}}, {Kind: "ConfigMap", Users: true}}
	return append(users, rules...)
}

// RefusedError means that an object must not be applied. Why has the reason.
type RefusedError struct {
	Cluster, Object, Why string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s of cluster %s is refused: %s", e.Object, e.Cluster, e.Why)
}

// object is an object as untyped JSON. Keys are case-sensitive as in an API server: a decoder into a struct would
// accept "Kind" as "kind".
type object map[string]any

func (o object) text(key string) string { text, _ := o[key].(string); return text }

func (o object) part(key string) object { part, _ := o[key].(map[string]any); return part }

// group returns the API group of the object; empty for the core group.
func (o object) group() string {
	group, _, found := strings.Cut(o.text("apiVersion"), "/")
	if !found {
		return ""
	}
	return group
}

// Reference is an object of the cluster's namespace to which an accepted object refers, such as the credentials of a
// BareMetalHost.
type Reference struct{ Kind, Name string }

// Check returns an error unless an object of a cluster may be applied: a rule selects it, or an accepted object refers
// to it. Its metadata must be clean.
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
	if why := whyDangerous(cluster, kind, metadata); why != "" {
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
	// ownDomain is the domain of Godwit's labels and annotations. Agents find by them what they have stored and created, and read in them
	// what they may change: with annotation godwit.dev/state-format, an object that a source has sent could never be deleted.
	ownDomain = "godwit.dev"
	// OriginalAnnotation is the annotation of Godwit that a source sends. The target checks its content.
	OriginalAnnotation = "godwit.dev/migration-original"
	// A ManagedCluster with one of these annotations names another cluster of the hub, on which the import controller
	// runs the klusterlet.
	deployMode     = "import.open-cluster-management.io/klusterlet-deploy-mode"
	hostingCluster = "import.open-cluster-management.io/hosting-cluster-name"
	// localCluster is the label of the hub's own ManagedCluster.
	localCluster = "local-cluster"
)

// whyDangerous returns why an object would give its sender access to more than the moved cluster, or empty. The source
// hub resolves the Placement of a migration, so it can choose the name of the cluster too.
func whyDangerous(cluster, kind string, metadata object) string {
	if Reserved(cluster) {
		return "namespace " + cluster + " is one of the hub's own, and belongs to no managed cluster"
	}
	for label := range metadata.part("labels") {
		if isOwn(label) {
			return "label " + label + " is set by Godwit alone: remove it on the source hub"
		}
	}
	for annotation := range metadata.part("annotations") {
		if isOwn(annotation) && annotation != OriginalAnnotation {
			return "annotation " + annotation + " is set by Godwit alone: remove it on the source hub"
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

// isOwn reports whether a label or an annotation is Godwit's.
func isOwn(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	return found && (domain == ownDomain || strings.HasSuffix(domain, "."+ownDomain))
}

// Reserved reports whether Kubernetes, OpenShift or Open Cluster Management reserve a namespace. No managed cluster can
// have this name.
func Reserved(namespace string) bool {
	return slices.Contains([]string{"default", "openshift", "multicluster-engine", "hive"}, namespace) ||
		slices.ContainsFunc([]string{"kube-", "openshift-", "open-cluster-management"}, func(prefix string) bool { return strings.HasPrefix(namespace, prefix) })
}

// Matches reports whether the rule selects an object of its kind.
func (r Rule) Matches(cluster string, content map[string]any) bool {
	return r.matches(cluster, object(content).part("metadata"))
}

// For returns the first rule that selects an object of a cluster.
func For(cluster string, content map[string]any, rules []Rule) (Rule, bool) {
	o := object(content)
	for _, r := range rules {
		if r.Group == o.group() && r.Kind == o.text("kind") && r.matches(cluster, o.part("metadata")) {
			return r, true
		}
	}
	return Rule{}, false
}

// References returns the objects to which an object refers, by the paths in the rules of its kind.
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

// follow returns the strings at a path.
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
		(r.Annotation == "" || annotated) && (r.Label == "" || labelled) && (!r.Users || ofUser(cluster, metadata))
}

const (
	// accountName is on a Secret with a token of a ServiceAccount.
	accountName = "kubernetes.io/service-account.name"
	// managedAccount is on a Secret with the token that an add-on brings from the cluster.
	managedAccount = "authentication.open-cluster-management.io/is-managed-serviceaccount"
)

// ofUser reports whether a user has made a Secret or a ConfigMap of a cluster. The import controller would import the cluster by
// an auto-import-secret.
func ofUser(cluster string, metadata object) bool {
	owners, _ := metadata["ownerReferences"].([]any)
	_, ofAccount := metadata.part("annotations")[accountName]
	_, ofAddOn := metadata.part("labels")[managedAccount]
	made := []string{"kube-root-ca.crt", "openshift-service-ca.crt", ImportSecret(cluster), "auto-import-secret"}
	return len(owners) == 0 && !ofAccount && !ofAddOn && !slices.Contains(made, metadata.text("name"))
}

// OfUser reports whether a user has made a Secret or a ConfigMap in the namespace of a cluster.
func OfUser(cluster string, content map[string]any) bool {
	return ofUser(cluster, object(content).part("metadata"))
}

// stripped are the metadata fields that belong to the hub of the object.
var stripped = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
	"selfLink", "managedFields", "ownerReferences", "finalizers",
}

// lastApplied is the annotation of kubectl apply, which contains a copy of the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Clean removes the fields that belong to the hub of the object: identity, owners, finalizers, and the addresses of a
// ManagedCluster. It modifies the object.
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

// ImportSecret returns the name of the Secret with which the import controller imports a cluster.
func ImportSecret(cluster string) string { return cluster + "-import" }
