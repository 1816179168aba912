package hub_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

func newClient(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(shared.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newNamespace(t *testing.T, c client.Client) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "hub-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// migration is what a user writes: text, so that what Go's types can't express is tried as well.
func migration(t *testing.T, namespace, name, spec string) *unstructured.Unstructured {
	t.Helper()
	m := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("spec:\n  "+strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")), &m.Object); err != nil {
		t.Fatal(err)
	}
	m.SetGroupVersionKind(api.GroupVersion.WithKind("ManagedClusterMigration"))
	m.SetNamespace(namespace)
	m.SetName(name)
	return m
}

const valid = `
from: hub1
to: hub2
includedManagedClusters: [c1, c2]
`

// TestAdmission: the API server refuses a migration that could never end well, and says why.
//
// Matrix: H1, H2, H3, H4.
func TestAdmission(t *testing.T) {
	c := newClient(t)
	namespace := newNamespace(t, c)
	cases := map[string]struct {
		reason string
		name   string
		spec   string
		want   string // empty: accepted
	}{
		"List":              {reason: "As global hub's documentation has it.", spec: valid},
		"Placement":         {reason: "A placement instead of a list.", spec: "from: hub1\nto: hub2\nincludedManagedClustersPlacementRef: all.eu"},
		"StageTimeout":      {reason: "Long enough for the default of reconnectTimeout.", spec: valid + "supportedConfigs: {stageTimeout: 10m}"},
		"EmptyConfig":       {reason: "Global hub accepts it.", spec: valid + "supportedConfigs: {}"},
		"ShortReconnect":    {reason: "The shortest of both.", spec: valid + "supportedConfigs: {stageTimeout: 8m, reconnectTimeout: 180s}"},
		"SameHub":           {reason: "Nothing to move.", spec: "from: hub1\nto: hub1\nincludedManagedClusters: [c1]", want: "from and to are the same hub"},
		"NoFrom":            {reason: "Required.", spec: "to: hub1\nincludedManagedClusters: [c1]", want: "spec.from: Required value"},
		"NoTo":              {reason: "Required.", spec: "from: hub1\nincludedManagedClusters: [c1]", want: "spec.to: Required value"},
		"NoHubName":         {reason: "It could not be a ManagedCluster.", spec: "from: Hub_1\nto: hub2\nincludedManagedClusters: [c1]", want: "the name of a hub is the name of its ManagedCluster"},
		"EmptyFrom":         {reason: "An empty name is none.", spec: "from: ''\nto: hub2\nincludedManagedClusters: [c1]", want: "the name of a hub is the name of its ManagedCluster"},
		"EmptyList":         {reason: "Global hub completes it without a move.", spec: "from: hub1\nto: hub2\nincludedManagedClusters: []", want: "includedManagedClusters is empty: name at least one cluster"},
		"Duplicates":        {reason: "One cluster would be counted twice.", spec: "from: hub1\nto: hub2\nincludedManagedClusters: [c1, c2, c1]", want: `spec.includedManagedClusters[2]: Duplicate value: "c1"`},
		"NoClusterName":     {reason: "It could not have a namespace.", spec: "from: hub1\nto: hub2\nincludedManagedClusters: [c1, 'a b']", want: "the name of a managed cluster has lower case letters"},
		"Neither":           {reason: "No cluster.", spec: "from: hub1\nto: hub2", want: "no cluster is selected: set includedManagedClusters or includedManagedClustersPlacementRef"},
		"Both":              {reason: "Which one is meant is not known.", spec: valid + "includedManagedClustersPlacementRef: p", want: "includedManagedClusters and includedManagedClustersPlacementRef are both set"},
		"EmptyPlacement":    {reason: "An empty name selects nothing.", spec: "from: hub1\nto: hub2\nincludedManagedClustersPlacementRef: ''", want: "is the name of a Placement"},
		"HubAsCluster":      {reason: "The hub would have to move itself.", spec: "from: hub1\nto: hub2\nincludedManagedClusters: [c1, hub2]", want: "a hub can't be moved by a migration between it and another hub"},
		"Banana":            {reason: "Global hub accepts it, and all migrations stall.", spec: valid + "supportedConfigs: {stageTimeout: banana}", want: "stageTimeout is not a valid duration: write it as 15m or 1h30m"},
		"NegativeDuration":  {reason: "No duration to wait for.", spec: valid + "supportedConfigs: {stageTimeout: -5m}", want: "stageTimeout is not a valid duration"},
		"ShortStage":        {reason: "A cluster could not return in time.", spec: valid + "supportedConfigs: {stageTimeout: 7m}", want: "stageTimeout is shorter than 8m"},
		"ShortForReconnect": {reason: "A cluster could not return in time.", spec: valid + "supportedConfigs: {stageTimeout: 12m, reconnectTimeout: 10m}", want: "stageTimeout is shorter than reconnectTimeout and 5m"},
		"LongReconnect":     {reason: "The default of 12m would be too short.", spec: valid + "supportedConfigs: {reconnectTimeout: 10m}", want: "a reconnectTimeout above 7m needs a stageTimeout"},
		"TinyReconnect":     {reason: "The KlusterletConfig would be refused.", spec: valid + "supportedConfigs: {reconnectTimeout: 179s}", want: "reconnectTimeout is a duration from 180s to 1h"},
		"BananaReconnect":   {reason: "As for stageTimeout.", spec: valid + "supportedConfigs: {reconnectTimeout: banana}", want: "reconnectTimeout is not a valid duration"},
		"EndlessStage":      {reason: "No token is valid for that long.", spec: valid + "supportedConfigs: {stageTimeout: 25h}", want: "stageTimeout is longer than 24h"},
		"LongName":          {reason: "ConfigMaps and labels are named after it.", name: strings.Repeat("m", 64), spec: valid, want: "the name of a migration has at most 63 characters"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.name == "" {
				tc.name = strings.ToLower(name)
			}
			err := c.Create(t.Context(), migration(t, namespace, tc.name, tc.spec))
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s\ncreate: %v, want no error", tc.reason, err)
			case tc.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s\ncreate: %v, want Invalid with %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestEditMidRun: a spec can be corrected until the migration starts, and then no more.
//
// Matrix: H5.
func TestEditMidRun(t *testing.T) {
	c := newClient(t)
	namespace := newNamespace(t, c)
	edits := map[string]func(*api.ManagedClusterMigration){
		"from": func(m *api.ManagedClusterMigration) { m.Spec.From = "hub3" },
		"to":   func(m *api.ManagedClusterMigration) { m.Spec.To = "hub3" },
		"list": func(m *api.ManagedClusterMigration) { m.Spec.IncludedManagedClusters = []api.ClusterName{"c1"} },
		"list-to-policy": func(m *api.ManagedClusterMigration) {
			m.Spec.IncludedManagedClusters, m.Spec.IncludedManagedClustersPlacementRef = nil, "all"
		},
		"timeout": func(m *api.ManagedClusterMigration) {
			m.Spec.SupportedConfigs = &api.MigrationConfig{StageTimeout: &metav1.Duration{Duration: 3600e9}}
		},
	}
	phases := map[api.Phase]bool{
		"": true, api.PhasePending: true, api.PhaseValidating: false, api.PhaseInitializing: false, api.PhaseDeploying: false,
		api.PhaseRegistering: false, api.PhaseRollbacking: false, api.PhaseCleaning: false, api.PhaseCompleted: false, api.PhaseFailed: false,
	}
	for phase, allowed := range phases {
		for what, edit := range edits {
			t.Run(what+" in "+string(phase), func(t *testing.T) {
				m := &api.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "edit-"}}
				m.Spec = api.ManagedClusterMigrationSpec{From: "hub1", To: "hub2", IncludedManagedClusters: []api.ClusterName{"c1", "c2"}}
				if err := c.Create(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				if m.Status.ObservedGeneration != -1 {
					t.Errorf("observedGeneration of a new migration is %d, want -1", m.Status.ObservedGeneration)
				}
				if phase != "" {
					m.Status.Phase = phase
					if err := c.Status().Update(t.Context(), m); err != nil {
						t.Fatal(err)
					}
				}
				edit(m)
				err := c.Update(t.Context(), m)
				if allowed && err != nil {
					t.Errorf("update: %v, want no error", err)
				}
				if !allowed && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec can't be changed once the migration has started")) {
					t.Errorf("update: %v, want Invalid", err)
				}
			})
		}
	}
}

// TestCRDIsOurs: the annotation by which controllers recognise the CRD reaches the cluster, with the
// columns that users see.
func TestCRDIsOurs(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := newClient(t).Get(t.Context(), client.ObjectKey{Name: api.CRDName}, crd); err != nil {
		t.Fatal(err)
	}
	if crd.Annotations[api.OwnerAnnotation] != api.Owner {
		t.Errorf("annotations of the CRD are %v, want %s=%s", crd.Annotations, api.OwnerAnnotation, api.Owner)
	}
	var columns []string
	for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
		columns = append(columns, strings.ToUpper(column.Name))
	}
	if got, want := strings.Join(columns, " "), "PHASE READY MOVED FAILED AGE"; got != want {
		t.Errorf("columns are %s, want %s", got, want)
	}
	if got := crd.Spec.Names.ShortNames; len(got) != 1 || got[0] != "mcm" {
		t.Errorf("short names are %v, want mcm", got)
	}
}
