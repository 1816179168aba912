package klusterlet

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

const (
	// Name is the name of the Klusterlet that `clusteradm join` and the chart of Open Cluster Management create.
	Name = "klusterlet"
	// OwnSecret has the only bootstrap kubeconfig of a klusterlet without MultipleHubs. The klusterlet operator has the name.
	OwnSecret = "bootstrap-hub-kubeconfig" //nolint:gosec // a name
	// HubSecret has the kubeconfig and the certificate by which the agent is registered.
	HubSecret = "hub-kubeconfig-secret" //nolint:gosec // a name
	// SourceSecret has the bootstrap kubeconfig of the source hub during a migration.
	SourceSecret = "godwit-bootstrap-source"
	// TargetSecret has that of the target hub.
	TargetSecret = "godwit-bootstrap-target"
	// RoleName is the ClusterRole with the permissions of the work agent for Klusterlets.
	RoleName = "godwit:klusterlet"
	// aggregateLabel adds a ClusterRole to those of the work agent.
	aggregateLabel = "open-cluster-management.io/aggregate-to-work"
	// fieldManager of both hubs is the same, so that the target may remove what the source has set. The API requires the prefix.
	fieldManager = "work-agent-godwit"

	klusterlets = "klusterlets"
	secrets     = "secrets"
)

// Stage is what the ManifestWork does.
type Stage string

// Stages. The source goes through Reading, TwoHubs and Restored, the target through Reading, Handover and OneHub.
const (
	// Reading means that the cluster reports, and nothing is changed.
	Reading Stage = "Reading"
	// TwoHubs means that the klusterlet has the bootstrap kubeconfigs of both hubs.
	TwoHubs Stage = "TwoHubs"
	// Restored means that the klusterlet has what it had before TwoHubs.
	Restored Stage = "Restored"
	// Handover means that the bootstrap kubeconfig that the klusterlet will have alone is that of this hub. The Klusterlet does not change yet.
	Handover Stage = "Handover"
	// OneHub means that the klusterlet has the bootstrap kubeconfig of Handover alone.
	OneHub Stage = "OneHub"
)

// Config is what a stage sets on a cluster.
type Config struct {
	Stage Stage
	// Source and Target are the bootstrap kubeconfigs of TwoHubs.
	Source, Target []byte
	// Own is the bootstrap kubeconfig of Handover and of OneHub.
	Own []byte
	// Reconnect is how long the agent tries to reach a hub before it tries the other one.
	Reconnect time.Duration
}

// two reports whether the klusterlet has the kubeconfigs of two hubs in the stage. It is not known in Reading and Handover.
func (s Stage) two() (two, known bool) {
	return s == TwoHubs, s != Reading && s != Handover
}

// specOf returns the specification of the ManifestWork. The namespace of the facts is empty while it is not known.
func specOf(f Facts, c Config) (workv1.ManifestWorkSpec, error) {
	objects := []any{role()}
	for _, s := range []struct {
		name       string
		kubeconfig []byte
	}{{OwnSecret, c.Own}, {SourceSecret, c.Source}, {TargetSecret, c.Target}} {
		if s.kubeconfig != nil {
			data := map[string]any{cluster.KubeconfigKey: base64.StdEncoding.EncodeToString(s.kubeconfig)}
			objects = append(objects, secretOf(f.Namespace, s.name, data))
		}
	}
	if c.Stage == Reading && f.Namespace != "" {
		objects = append(objects, secretOf(f.Namespace, HubSecret, nil))
	}
	objects = append(objects, klusterletOf(f, c))

	spec := workv1.ManifestWorkSpec{DeleteOption: &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan, SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: staying(f.Namespace)},
	}}
	for _, o := range objects {
		raw, err := json.Marshal(o)
		if err != nil {
			return spec, fmt.Errorf("render the ManifestWork of a klusterlet: %w", err)
		}
		spec.Workload.Manifests = append(spec.Workload.Manifests, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	spec.ManifestConfigs = options(f, c)
	return spec, nil
}

// role lets the work agent change the Klusterlet. It can't create or delete one.
func role() map[string]any {
	rule := func(names []any, verbs ...any) map[string]any {
		r := map[string]any{"apiGroups": []any{operatorv1.GroupName}, "resources": []any{klusterlets}, "verbs": verbs}
		if names != nil {
			r["resourceNames"] = names
		}
		return r
	}
	return map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": map[string]any{"name": RoleName, "labels": map[string]any{aggregateLabel: "true"}},
		"rules":    []any{rule(nil, "get", "list", "watch"), rule([]any{Name}, "patch")},
	}
}

func secretOf(namespace, name string, data map[string]any) map[string]any {
	secret := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": namespace, "name": name}}
	if data != nil {
		secret["data"] = data
	}
	return secret
}

// klusterletOf returns the fields of the Klusterlet that a stage sets. Those that a former stage has set and this one does not, server-side
// apply removes.
func klusterletOf(f Facts, c Config) map[string]any {
	k := map[string]any{"apiVersion": operatorv1.GroupVersion.String(), "kind": "Klusterlet", "metadata": map[string]any{"name": Name}}
	two, known := c.Stage.two()
	if !known {
		return k
	}
	// Without any of its fields, the API server would refuse bootstrapKubeConfigs as null. None is its default.
	registration := map[string]any{"bootstrapKubeConfigs": map[string]any{"type": string(operatorv1.None)}}
	if gates := gatesIn(f.Gates, c.Stage); len(gates) > 0 {
		list := make([]any, len(gates))
		for i, g := range gates {
			list[i] = map[string]any{"feature": g.Feature, "mode": string(g.Mode)}
		}
		registration["featureGates"] = list
	}
	if two {
		registration["bootstrapKubeConfigs"] = map[string]any{
			"type": string(operatorv1.LocalSecrets),
			"localSecretsConfig": map[string]any{
				// An agent without a certificate takes the first hub that accepts the cluster, or does not know it.
				"kubeConfigSecrets":           []any{map[string]any{"name": SourceSecret}, map[string]any{"name": TargetSecret}},
				"hubConnectionTimeoutSeconds": int64(c.Reconnect / time.Second),
			},
		}
	}
	k["spec"] = map[string]any{"registrationConfiguration": registration}
	return k
}

// gatesIn returns the feature gates of a stage. The list is set as a whole, and so has what the user has set.
func gatesIn(users []operatorv1.FeatureGate, s Stage) []operatorv1.FeatureGate {
	isMultipleHubs := func(g operatorv1.FeatureGate) bool { return g.Feature == multipleHubs }
	switch s {
	case TwoHubs:
		gates := slices.DeleteFunc(slices.Clone(users), isMultipleHubs)
		return append(gates, operatorv1.FeatureGate{Feature: multipleHubs, Mode: operatorv1.FeatureGateModeTypeEnable})
	case OneHub:
		return slices.DeleteFunc(slices.Clone(users), isMultipleHubs)
	}
	return users
}

// staying are the objects that stay when the ManifestWork goes.
func staying(namespace string) []workv1.OrphaningRule {
	rules := []workv1.OrphaningRule{{Group: operatorv1.GroupName, Resource: klusterlets, Name: Name}}
	if namespace != "" {
		for _, name := range []string{OwnSecret, HubSecret} {
			rules = append(rules, workv1.OrphaningRule{Resource: secrets, Namespace: namespace, Name: name})
		}
	}
	return rules
}

// options say how the work agent applies the objects, and what it reports of them.
func options(f Facts, c Config) []workv1.ManifestConfigOption {
	readOnly := &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}
	apply := &workv1.UpdateStrategy{
		Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{Force: true, FieldManager: fieldManager},
	}
	strategy := readOnly
	if _, known := c.Stage.two(); known {
		strategy = apply
	}
	all := []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: operatorv1.GroupName, Resource: klusterlets, Name: Name},
		UpdateStrategy:     strategy, FeedbackScrapeType: workv1.FeedbackWatchType,
		FeedbackRules: []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: paths(c.Stage)}},
	}}
	if c.Stage == Reading && f.Namespace != "" {
		all = append(all, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: secrets, Namespace: f.Namespace, Name: HubSecret}, UpdateStrategy: readOnly,
			FeedbackRules: []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: valueHub, Path: ".data." + cluster.KubeconfigKey}}}},
		})
	}
	if c.Own != nil {
		all = append(all, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: secrets, Namespace: f.Namespace, Name: OwnSecret}, UpdateStrategy: apply,
		})
	}
	return all
}

// paths are the fields of the Klusterlet that the work agent reports.
func paths(s Stage) []workv1.JsonPath {
	const registration = ".spec.registrationConfiguration"
	all := []workv1.JsonPath{
		{Name: valueType, Path: registration + ".bootstrapKubeConfigs.type"},
		{Name: valueFirst, Path: registration + ".bootstrapKubeConfigs.localSecretsConfig.kubeConfigSecrets[0].name"},
		{Name: valueGeneration, Path: ".metadata.generation"},
		{Name: valueObserved, Path: ".status.observedGeneration"},
	}
	if s != Reading {
		return all
	}
	all = append(all, workv1.JsonPath{Name: valueNamespace, Path: ".spec.namespace"}, workv1.JsonPath{Name: valueMode, Path: ".spec.deployOption.mode"},
		workv1.JsonPath{Name: valueDriver, Path: registration + ".registrationDriver.authType"})
	for i := range maxGates {
		gate := fmt.Sprintf("%s.featureGates[%d]", registration, i)
		all = append(all, workv1.JsonPath{Name: valueGate(i), Path: gate + ".feature"}, workv1.JsonPath{Name: valueGateMode(i), Path: gate + ".mode"})
	}
	return all
}
