package resource

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestCheck: the target applies what moves with a cluster, and nothing else that a source
// sends.
//
// Matrix: H54, H56.
func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason, object string
		references     []Reference
		want           string // empty: accepted
	}{
		"AdminPassword":    {reason: "One of the secrets of every cluster.", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"c1-admin-password","namespace":"c1"}}`},
		"SyncWave":         {reason: "A network secret of siteconfig.", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"net","namespace":"c1","annotations":{"siteconfig.open-cluster-management.io/sync-wave":"1"}}}`},
		"Preserved":        {reason: "What a user has labelled.", object: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mine","namespace":"c1","labels":{"siteconfig.open-cluster-management.io/preserve":""}}}`},
		"ManagedCluster":   {reason: "The cluster itself.", object: `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"c1"}}`},
		"Host":             {reason: "Each host of the cluster.", object: `{"apiVersion":"metal3.io/v1alpha1","kind":"BareMetalHost","metadata":{"name":"node-3","namespace":"c1"}}`},
		"Deployment":       {reason: "Hive's description of the cluster.", object: `{"apiVersion":"hive.openshift.io/v1","kind":"ClusterDeployment","metadata":{"name":"c1","namespace":"c1"}}`},
		"Referenced":       {reason: "The credentials that a host names.", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bmc","namespace":"c1"}}`, references: []Reference{{"Secret", "bmc"}}},
		"OtherSecret":      {reason: "A secret that nothing names.", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bmc","namespace":"c1"}}`, want: "no rule for its kind"},
		"OtherNamespace":   {reason: "A secret with the right name in a namespace of the hub.", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"c1-admin-password","namespace":"kube-system"}}`, want: `namespace "kube-system"`},
		"ReferencedThere":  {reason: "A reference reaches no other namespace.", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bmc","namespace":"kube-system"}}`, references: []Reference{{"Secret", "bmc"}}, want: `namespace "kube-system"`},
		"ReferencedRole":   {reason: "A reference makes no kind allowed.", object: `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"bmc","namespace":"c1"}}`, references: []Reference{{"ServiceAccount", "bmc"}}, want: "no rule names objects of kind ServiceAccount"},
		"OtherCluster":     {reason: "A cluster that is not moved.", object: `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"c2"}}`, want: "no rule for its kind"},
		"ClusterRole":      {reason: "A compromised source would be administrator of the target.", object: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"c1"}}`, want: "no rule names objects of kind ClusterRoleBinding"},
		"SameKind":         {reason: "A kind of the same name in another group.", object: `{"apiVersion":"evil.io/v1","kind":"ManagedCluster","metadata":{"name":"c1"}}`, want: "no rule names objects"},
		"Finalizer":        {reason: "A finalizer would keep the object for ever.", object: `{"apiVersion":"metal3.io/v1alpha1","kind":"BareMetalHost","metadata":{"name":"n","namespace":"c1","finalizers":["x"]}}`, want: "metadata.finalizers"},
		"Owner":            {reason: "An owner that is not there has the object deleted.", object: `{"apiVersion":"metal3.io/v1alpha1","kind":"BareMetalHost","metadata":{"name":"n","namespace":"c1","ownerReferences":[{}]}}`, want: "metadata.ownerReferences"},
		"NoName":           {reason: "An object without a name.", object: `{"apiVersion":"metal3.io/v1alpha1","kind":"BareMetalHost","metadata":{"namespace":"c1"}}`, want: "no rule for its kind"},
		"OtherCase":        {reason: "An API server reads kind, and not Kind.", object: `{"apiVersion":"v1","kind":"ClusterRoleBinding","Kind":"Secret","metadata":{"name":"c1-admin-password","namespace":"c1"}}`, want: "ClusterRoleBinding"},
		"PlantedCommand":   {reason: "A stored command, which the agent would execute after a restart.", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"godwit-migration-x","namespace":"c1","labels":{"siteconfig.open-cluster-management.io/preserve":"","godwit.dev/hub-migration":"x"}}}`, want: "label godwit.dev/hub-migration is set by Godwit alone"},
		"Hosted":           {reason: "The klusterlet would run on a cluster of the target, with images of the source's choice.", object: `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"c1","annotations":{"import.open-cluster-management.io/klusterlet-deploy-mode":"Hosted"}}}`, want: "klusterlet-deploy-mode"},
		"HostingCluster":   {reason: "The same by the other annotation.", object: `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"c1","annotations":{"import.open-cluster-management.io/hosting-cluster-name":"c2"}}}`, want: "hosting-cluster-name"},
		"DeployedByItself": {reason: "The default, in writing.", object: `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"c1","annotations":{"import.open-cluster-management.io/klusterlet-deploy-mode":"Default"}}}`},
		"Local":            {reason: "The cluster would be the hub.", object: `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"c1","labels":{"local-cluster":"true"}}}`, want: "label local-cluster"},
		"NoObject":         {reason: "Foreign content.", object: `{"metadata":[1],"kind":3}`, want: "no rule names"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := Check("c1", decode(t, tc.object), Rules(), tc.references)
			if tc.want == "" {
				if err != nil {
					t.Errorf("%s\n%v, want no error", tc.reason, err)
				}
				return
			}
			if r := (*RefusedError)(nil); !errors.As(err, &r) || !strings.Contains(err.Error(), tc.want) || r.Cluster != "c1" {
				t.Errorf("%s\n%v, want a refusal with %q", tc.reason, err, tc.want)
			}
		})
	}
}

// TestUserObjects: if the user has chosen that they move, Secrets and ConfigMaps of users do, and nothing else.
func TestUserObjects(t *testing.T) {
	cases := map[string]struct {
		reason, object, want string
	}{
		"Secret":          {reason: "Of a user.", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"mine","namespace":"c1"}}`},
		"ConfigMap":       {reason: "Of a user.", object: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mine","namespace":"c1"}}`},
		"Elsewhere":       {reason: "Of another namespace.", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"mine","namespace":"c2"}}`, want: `namespace "c2"`},
		"Import":          {reason: "The import controller makes its own.", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"c1-import","namespace":"c1"}}`, want: "no rule for its kind"},
		"AutoImport":      {reason: "The target would import any cluster.", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"auto-import-secret","namespace":"c1"}}`, want: "no rule for its kind"},
		"Account":         {reason: "The target would issue a token.", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"t","namespace":"c1","annotations":{"kubernetes.io/service-account.name":"default"}}}`, want: "no rule for its kind"},
		"ManagedAccount":  {reason: "The add-on brings it from the cluster.", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"t","namespace":"c1","labels":{"authentication.open-cluster-management.io/is-managed-serviceaccount":"true"}}}`, want: "no rule for its kind"},
		"RootCA":          {reason: "Kubernetes makes it in each namespace.", object: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kube-root-ca.crt","namespace":"c1"}}`, want: "no rule for its kind"},
		"RoleBinding":     {reason: "Objects of other kinds do not move.", object: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"mine","namespace":"c1"}}`, want: "no rule names objects of kind RoleBinding"},
		"LabelledByAgent": {reason: "It would look like a stored command.", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","namespace":"c1","labels":{"godwit.dev/hub-migration":"x"}}}`, want: "set by Godwit alone"},
	}
	for name, tc := range cases {
		err := Check("c1", decode(t, tc.object), WithUserObjects(Rules()), nil)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %s %v, want %q", name, tc.reason, err, tc.want)
		}
	}
	owned := decode(t, `{"metadata":{"name":"mine","namespace":"c1","ownerReferences":[{"name":"x"}]}}`)
	if OfUser("c1", owned) {
		t.Error("an object with an owner is not a user's")
	}
}

// TestReserved: a source hub that resolves a Placement can't have its Secrets written to a
// namespace of the target hub, by naming it as a cluster.
//
// Matrix: H55.
func TestReserved(t *testing.T) {
	for _, namespace := range []string{"default", "kube-system", "kube-public", "openshift", "openshift-config", "open-cluster-management", "open-cluster-management-hub", "multicluster-engine", "hive"} {
		secret := decode(t, `{"apiVersion":"v1","kind":"Secret","type":"bootstrap.kubernetes.io/token","metadata":{"name":"bootstrap-token-abcdef","namespace":"`+namespace+`","labels":{"siteconfig.open-cluster-management.io/preserve":""}}}`)
		if err := Check(namespace, secret, Rules(), nil); err == nil || !strings.Contains(err.Error(), "one of the hub's own") {
			t.Errorf("a Secret in namespace %s: %v, want a refusal", namespace, err)
		}
	}
	for _, name := range []string{"c1", "kubernetes", "default-1", "opencluster", "hive2", "my-openshift-1"} {
		if Reserved(name) {
			t.Errorf("%s is no name for a cluster, want one", name)
		}
	}
}

// TestClean: what was cleaned is accepted, and keeps what is the user's.
func TestClean(t *testing.T) {
	text := `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"c1","uid":"u","resourceVersion":"1",
		"generation":2,"creationTimestamp":"2026-01-01T00:00:00Z","managedFields":[],"ownerReferences":[],"finalizers":["f"],"labels":{"site":"a"},
		"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","mine":"yes"}},
		"spec":{"leaseDurationSeconds":60,"managedClusterClientConfigs":[{"url":"https://c1"}]}}`
	o := decode(t, text)
	if err := Check("c1", o, Rules(), nil); err == nil {
		t.Error("an object that was not cleaned is accepted")
	}
	Clean(o)
	got, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"annotations":{"mine":"yes"},"labels":{"site":"a"},"name":"c1"},"spec":{"leaseDurationSeconds":60}}`
	if string(got) != want {
		t.Errorf("cleaned:\n%s\nwant\n%s", got, want)
	}
	if err := Check("c1", o, Rules(), nil); err != nil {
		t.Error(err)
	}
	Clean(map[string]any{}) // an object without metadata
}

// TestReferences: what an object names is found at the paths of its kind, in lists as well,
// and foreign content is no error.
func TestReferences(t *testing.T) {
	cases := map[string]struct {
		object string
		want   []Reference
	}{
		"Host": {
			`{"apiVersion":"metal3.io/v1alpha1","kind":"BareMetalHost","spec":{"bmc":{"credentialsName":"bmc"},"networkData":{"name":"net"},"userData":{"name":""}}}`,
			[]Reference{{"Secret", "bmc"}, {"Secret", "net"}},
		},
		"List": {
			`{"apiVersion":"extensions.hive.openshift.io/v1alpha1","kind":"ImageClusterInstall","spec":{"extraManifestsRefs":[{"name":"a"},3,{"name":"b"},{"name":"a"}]}}`,
			[]Reference{{"ConfigMap", "a"}, {"ConfigMap", "b"}},
		},
		"PullSecret": {`{"apiVersion":"hive.openshift.io/v1","kind":"ClusterDeployment","spec":{"pullSecretRef":{"name":"pull"}}}`, []Reference{{"Secret", "pull"}}},
		"OtherGroup": {`{"apiVersion":"evil.io/v1","kind":"ClusterDeployment","spec":{"pullSecretRef":{"name":"pull"}}}`, nil},
		"Foreign":    {`{"apiVersion":"metal3.io/v1alpha1","kind":"BareMetalHost","spec":[{"bmc":1}]}`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := References(decode(t, tc.object), Rules()); !slices.Equal(got, tc.want) {
				t.Errorf("references are %v, want %v", got, tc.want)
			}
		})
	}
}
