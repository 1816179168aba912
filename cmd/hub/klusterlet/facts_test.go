package klusterlet

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// reported is a ManifestWork with the report of an object.
func reported(resource, name string, available metav1.ConditionStatus, values map[string]string) *workv1.ManifestWork {
	m := workv1.ManifestCondition{
		ResourceMeta: workv1.ManifestResourceMeta{Resource: resource, Name: name},
		Conditions:   []metav1.Condition{{Type: workv1.ManifestAvailable, Status: available, Message: "the reason of the agent"}},
	}
	for key, value := range values {
		m.StatusFeedbacks.Values = append(m.StatusFeedbacks.Values, workv1.FeedbackValue{Name: key, Value: workv1.FieldValue{Type: workv1.String, String: &value}})
	}
	work := &workv1.ManifestWork{}
	work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{m}
	return work
}

func TestCheck(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range maxGates {
		many[valueGate(i)], many[valueGateMode(i)] = fmt.Sprint("Gate", i), "Enable"
	}
	for name, test := range map[string]struct {
		reason    string
		available metav1.ConditionStatus
		values    map[string]string
		why       string // part of the refusal
	}{
		"Default":     {"what clusteradm joins", metav1.ConditionTrue, map[string]string{valueMode: "Default", valueType: "None", valueDriver: "csr"}, ""},
		"Singleton":   {"one Deployment instead of two", metav1.ConditionTrue, map[string]string{valueMode: "Singleton"}, ""},
		"Gates":       {"gates of the user are kept", metav1.ConditionTrue, map[string]string{valueGate(0): "ClusterClaim", valueGateMode(0): "Disable"}, ""},
		"Off":         {"the user has disabled it explicitly", metav1.ConditionTrue, map[string]string{valueGate(0): multipleHubs, valueGateMode(0): "Disable"}, ""},
		"Missing":     {"the Klusterlet has another name", metav1.ConditionFalse, nil, "no Klusterlet klusterlet"},
		"Hosted":      {"the work agent applies to another cluster", metav1.ConditionTrue, map[string]string{valueMode: "Hosted"}, "hosting cluster"},
		"Hosted one":  {"the same with one Deployment", metav1.ConditionTrue, map[string]string{valueMode: "SingletonHosted"}, "hosting cluster"},
		"Driver":      {"no kubeconfig with a token registers it", metav1.ConditionTrue, map[string]string{valueDriver: "awsirsa"}, "awsirsa"},
		"Several":     {"the user's own list would be lost", metav1.ConditionTrue, map[string]string{valueType: "LocalSecrets"}, "several hubs"},
		"Enabled":     {"the user's own list may follow", metav1.ConditionTrue, map[string]string{valueGate(1): multipleHubs, valueGateMode(1): "Enable"}, "several hubs"},
		"Many gates":  {"a gate that is not read would be lost", metav1.ConditionTrue, many, "16 feature gates"},
		"Not read":    {"the permission is not aggregated yet", metav1.ConditionUnknown, nil, ""},
		"Other value": {"an unknown mode is one of later releases", metav1.ConditionTrue, map[string]string{valueMode: "New"}, ""},
	} {
		r := reportOf(reported(klusterlets, Name, test.available, test.values), klusterlets, Name)
		err := r.check("c1")
		var failure *cluster.Error
		switch {
		case test.why == "" && err != nil:
			t.Errorf("%s: %v, want no error: %s", name, err, test.reason)
		case test.why != "" && (!errors.As(err, &failure) || failure.Reason != cluster.ReasonKlusterlet || !strings.Contains(failure.Message, test.why)):
			t.Errorf("%s: %v, want %s with %q: %s", name, err, cluster.ReasonKlusterlet, test.why, test.reason)
		}
	}
}

func TestReportSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	r := reportOf(reported(klusterlets, Name, metav1.ConditionUnknown, nil), klusterlets, Name)
	if !r.found || r.problem != "the reason of the agent" {
		t.Errorf("an object that the agent may not read: found %v, problem %q", r.found, r.problem)
	}
	if r := reportOf(&workv1.ManifestWork{}, klusterlets, Name); !r.found || r.problem == "" {
		t.Errorf("no report: found %v, problem %q", r.found, r.problem)
	}
}

const agentKubeconfig = `apiVersion: v1
kind: Config
clusters:
- name: default-cluster
  cluster: {server: "https://hub:6443", certificate-authority-data: Q0E=, proxy-url: "http://proxy:3128"}
contexts:
- name: default-context
  context: {cluster: default-cluster, user: default-auth, namespace: configuration}
current-context: default-context
users:
- name: default-auth
  user: {client-certificate: tls.crt, client-key: tls.key}
`

// TestBootstrapKeepsTheCertificate: the agent compares server, proxy, CA and the name of the cluster with its own kubeconfig.
func TestBootstrapKeepsTheCertificate(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "secret"} {
		text, err := Facts{Hub: []byte(agentKubeconfig)}.Bootstrap(token)
		if err != nil {
			t.Fatal(err)
		}
		own, err := clientcmd.Load([]byte(agentKubeconfig))
		if err != nil {
			t.Fatal(err)
		}
		bootstrap, err := clientcmd.Load(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(own.Clusters, bootstrap.Clusters); diff != "" {
			t.Errorf("clusters (-agent +bootstrap):\n%s", diff)
		}
		current := bootstrap.Contexts[bootstrap.CurrentContext]
		if current == nil || current.Cluster != "default-cluster" || bootstrap.AuthInfos[current.AuthInfo].Token != token {
			t.Errorf("context %+v with token %q, want default-cluster with %q", current, text, token)
		}
		if strings.Contains(string(text), "tls.key") {
			t.Errorf("the bootstrap kubeconfig names a file of the agent:\n%s", text)
		}
	}
}

func TestHubIsRefused(t *testing.T) {
	t.Parallel()
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, value := range map[string]string{
		"absent": "", "not base64": "%", "no kubeconfig": encode("a: b"), "no cluster": encode("current-context: x"),
		"too large": encode(agentKubeconfig + strings.Repeat("#", maxHub)),
	} {
		r := reportOf(reported(secrets, HubSecret, metav1.ConditionTrue, map[string]string{valueHub: value}), secrets, HubSecret)
		if _, err := r.hub("c1"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	r := reportOf(reported(secrets, HubSecret, metav1.ConditionTrue, map[string]string{valueHub: encode(agentKubeconfig)}), secrets, HubSecret)
	if text, err := r.hub("c1"); err != nil || string(text) != agentKubeconfig {
		t.Errorf("%q, %v", text, err)
	}
}

// TestGates: the list is set as a whole, so that each stage has what the user has set.
func TestGates(t *testing.T) {
	t.Parallel()
	gate := func(feature, mode string) operatorv1.FeatureGate {
		return operatorv1.FeatureGate{Feature: feature, Mode: operatorv1.FeatureGateModeType(mode)}
	}
	users := []operatorv1.FeatureGate{gate("ClusterClaim", "Disable"), gate(multipleHubs, "Disable"), gate("ClusterProperty", "Enable")}
	for stage, want := range map[Stage][]operatorv1.FeatureGate{
		TwoHubs:  {gate("ClusterClaim", "Disable"), gate("ClusterProperty", "Enable"), gate(multipleHubs, "Enable")},
		Restored: users,
		OneHub:   {gate("ClusterClaim", "Disable"), gate("ClusterProperty", "Enable")},
	} {
		if diff := cmp.Diff(want, gatesIn(users, stage)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", stage, diff)
		}
	}
	if len(users) != 3 || users[1].Mode != operatorv1.FeatureGateModeTypeDisable {
		t.Errorf("the gates of the user have changed: %v", users)
	}
}
