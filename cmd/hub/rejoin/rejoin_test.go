package rejoin

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/godwit-dev/godwit"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
)

const (
	lostHub = "https://lost"
	newHub  = "https://target"
)

// kubeconfigOf returns a kubeconfig whose token is valid for an hour, or that has none.
func kubeconfigOf(t *testing.T, server string, token bool) []byte {
	t.Helper()
	text := ""
	if token {
		text = "e30.eyJleHAiOjM2MDB9.e30" // {"exp":3600}
	}
	kubeconfig, err := cluster.Kubeconfig(server, nil, text)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// workOf returns a work of a hub that has applied an object: its group, resource, namespace and name.
func workOf(server, name string, object ...string) workv1.AppliedManifestWork {
	return workv1.AppliedManifestWork{
		Spec: workv1.AppliedManifestWorkSpec{HubHash: HashOf(server), AgentID: "agent", ManifestWorkName: name},
		Status: workv1.AppliedManifestWorkStatus{AppliedResources: []workv1.AppliedManifestResourceMeta{{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: object[0], Resource: object[1], Namespace: object[2], Name: object[3]},
		}}},
	}
}

// lostFacts are those of a cluster whose hub is lost, before the first step.
func lostFacts(t *testing.T) Facts {
	t.Helper()
	return Facts{
		Cluster: "c1", UID: "uid", Address: clusterv1.ClientConfig{URL: newHub}, Now: time.Unix(0, 0), OnEvictedWorks: api.EvictedWorksOrphan,
		Klusterlet: &operatorv1.Klusterlet{ObjectMeta: metav1.ObjectMeta{Name: klusterlet.Name, UID: "agent"}, Spec: operatorv1.KlusterletSpec{ClusterName: "c1"}},
		Agent:      Agent{Server: lostHub, Cluster: "c1"}, Bootstrap: kubeconfigOf(t, lostHub, false),
		Works: []workv1.AppliedManifestWork{workOf(lostHub, "shop", "apps", "deployments", "shop", "web")},
	}
}

// managed returns a ManagedCluster with a mark, accepted or not, joined or not.
func managed(mark string, accepts, joined bool) *clusterv1.ManagedCluster {
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: accepts}}
	if mark != "" {
		cluster.MarkOwned(mc, mark, "")
	}
	if joined {
		mc.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionJoined, Status: metav1.ConditionTrue}}
	}
	return mc
}

// due is a step that is due after a change of the facts.
type due struct {
	want   Step
	change func()
}

// mustFollow fails the test unless the steps are due, one after the other.
func mustFollow(t *testing.T, f *Facts, steps []due) {
	t.Helper()
	for _, step := range steps {
		step.change()
		if err := Check(*f); err != nil {
			t.Errorf("before %s: %v", step.want, err)
		}
		if got := Next(*f); got != step.want {
			t.Fatalf("the step is %s, want %s", got, step.want)
		}
	}
}

// TestNext follows one move: each case changes the facts of the one before as its step does.
//
// Matrix: H104.
func TestNext(t *testing.T) {
	t.Parallel()
	f := lostFacts(t)
	mustFollow(t, &f, []due{
		{Accept, func() {}},
		{Accept, func() { // a migration has left it, and would configure the klusterlet
			f.Managed = managed("migration", true, false)
			original := cluster.Original{Migration: "migration"}
			original.Replace(f.Managed, cluster.AnnotationMigrating, "migration")
			if err := original.Save(f.Managed); err != nil {
				t.Fatal(err)
			}
		}},
		{Protect, func() { f.Managed = managed("rejoin-uid", true, false) }},
		{AwaitOperator, func() { f.Klusterlet.Generation = 2; f.Record.protect(f.Klusterlet) }},
		{Bootstrap, func() { f.Klusterlet.Status.ObservedGeneration = 2 }},
		{Await, func() { f.Bootstrap = kubeconfigOf(t, newHub, true) }},
		{Bootstrap, func() { f.Now = time.Unix(3000, 0) }}, // the token expires in ten minutes
		{OneHub, func() {
			f.Now = time.Unix(0, 0)
			f.Klusterlet.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{BootstrapKubeConfigs: operatorv1.BootstrapKubeConfigs{Type: operatorv1.LocalSecrets}}
		}},
		{Await, func() { klusterlet.SetOneHub(f.Klusterlet) }},
		{Await, func() { f.Agent.Server = newHub }}, // it has its certificate
		{Await, func() { f.Managed = managed("rejoin-uid", true, true) }},
		{Release, func() { f.Arrived = true }},
		{Handover, func() { f.Works = nil }},
		{Clean, func() { f.Bootstrap = kubeconfigOf(t, newHub, false); f.Leftovers = []string{"Secret a"} }},
		{Restore, func() { f.Leftovers = nil }},
		{Finish, func() { f.Record.restore(f.Klusterlet) }},
		{Done, func() { f.Managed = managed("", true, true) }},
	})
}

// TestCheckRefuses has a case for each refusal.
//
// Matrix: H107, H135.
func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		why    string
		change func(*Facts)
		reason *godwit.Reason
		text   string
	}{
		"no Klusterlet":   {"no agent would register", func(f *Facts) { f.Klusterlet = nil }, cluster.ReasonKlusterlet, "clusteradm join"},
		"hosted":          {"its agents run elsewhere", func(f *Facts) { f.Klusterlet.Spec.DeployOption.Mode = operatorv1.InstallModeHosted }, cluster.ReasonKlusterlet, "hosting"},
		"another name":    {"another cluster of that name would lose its place", func(f *Facts) { f.Klusterlet.Spec.ClusterName = "c2" }, cluster.ReasonKlusterlet, "c2"},
		"generated name":  {"the Klusterlet may have no name", func(f *Facts) { f.Klusterlet.Spec.ClusterName, f.Agent.Cluster = "", "c2" }, cluster.ReasonKlusterlet, "c2"},
		"hubs of a user":  {"its agent finds another hub", severalHubs("user-1", "user-2"), cluster.ReasonKlusterlet, "user-1, user-2"},
		"hub answers":     {"the cluster would be at two hubs", func(f *Facts) { f.Answers = true }, cluster.ReasonHubAnswers, "--from-context"},
		"no CA":           {"its agent would not register", func(f *Facts) { f.Untrusted = "clusters get no CA" }, api.ReasonHubAddressUntrusted, "no CA"},
		"no choice":       {"the cluster would lose objects", func(f *Facts) { f.OnEvictedWorks = "" }, cluster.ReasonWorkStays, "shop"},
		"Refuse":          {"the user refuses the loss", func(f *Facts) { f.OnEvictedWorks = api.EvictedWorksRefuse }, cluster.ReasonWorkStays, "shop"},
		"has joined":      {"a hub has one cluster of a name", func(f *Facts) { f.Managed = managed("", true, true) }, cluster.ReasonOtherCluster, "has joined"},
		"of another":      {"the name is taken by another command", func(f *Facts) { f.Managed = managed("rejoin-other", true, false) }, cluster.ReasonOtherCluster, "UID other"},
		"same address":    {"it is not lost", func(f *Facts) { f.Agent.Server = newHub }, cluster.ReasonOtherCluster, "rebuilt"},
		"another address": {"a migration has moved it, by another address", func(f *Facts) { f.Managed = managed("m", true, true) }, cluster.ReasonOtherCluster, "--to-server"},
		"incomplete": {"hosts without their status would be provisioned", func(f *Facts) { f.Managed, f.Received = managed("m", false, false), []string{"BareMetalHost a"} },
			cluster.ReasonNotPrepared, "BareMetalHost a"},
		"being deleted": {"what is created would go", func(f *Facts) {
			f.Managed = managed("rejoin-uid", true, false)
			f.Managed.DeletionTimestamp = &metav1.Time{}
			f.Managed.DeletionTimestamp.Time = time.Unix(1, 0)
		}, cluster.ReasonBeingDeleted, "c1"},
	} {
		f := lostFacts(t)
		test.change(&f)
		err := Check(f)
		var failure *cluster.Error
		if !errors.As(err, &failure) || failure.Reason != test.reason || !strings.Contains(failure.Message, test.text) {
			t.Errorf("%s: %v, want %s with %q: %s", name, err, test.reason.Name, test.text, test.why)
		}
	}
}

// TestNextWithImportController: the import controller makes the bootstrap kubeconfig, which stays.
//
// Matrix: H110.
func TestNextWithImportController(t *testing.T) {
	t.Parallel()
	f := lostFacts(t)
	f.Imports, f.Works = true, nil
	mustFollow(t, &f, []due{
		{Accept, func() { // the import controller would not import it
			f.Managed = managed("migration", true, false)
			original := cluster.Original{Migration: "migration"}
			original.Replace(f.Managed, cluster.AnnotationNoAutoImport, "")
			if err := original.Save(f.Managed); err != nil {
				t.Fatal(err)
			}
		}},
		{AwaitImport, func() { f.Managed = managed("rejoin-uid", true, false) }},
		{Bootstrap, func() { f.Imported = kubeconfigOf(t, newHub, true) }},
		{Await, func() { f.Bootstrap = f.Imported }},
		{Finish, func() { f.Agent.Server, f.Managed, f.Arrived = newHub, managed("rejoin-uid", true, true), true }},
		{Done, func() { f.Managed = managed("", true, true) }},
	})
}

// TestImportedIn reads the manifests of an import controller, in which a Secret may stand anywhere.
func TestImportedIn(t *testing.T) {
	t.Parallel()
	other := "apiVersion: v1\nkind: Secret\nmetadata: {name: another, namespace: agents}\ndata: {kubeconfig: eA==}\n"
	own := "apiVersion: v1\nkind: Secret\nmetadata: {name: bootstrap-hub-kubeconfig, namespace: agents}\ndata: {kubeconfig: b3du}\n"
	for name, test := range map[string]struct{ manifests, want string }{
		"last":    {"\n---\n" + other + "\n---\n" + own, "own"},
		"first":   {own + "---\n" + other, "own"},
		"none":    {other, ""},
		"nothing": {"", ""},
	} {
		if got, err := importedIn([]byte(test.manifests)); err != nil || string(got) != test.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, test.want)
		}
	}
	if _, err := importedIn([]byte("{")); err == nil {
		t.Error("what is no YAML is read")
	}
}

func severalHubs(secrets ...string) func(*Facts) {
	return func(f *Facts) {
		local := &operatorv1.LocalSecretsConfig{}
		for _, s := range secrets {
			local.KubeConfigSecrets = append(local.KubeConfigSecrets, operatorv1.KubeConfigSecret{Name: s})
		}
		f.Klusterlet.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
			BootstrapKubeConfigs: operatorv1.BootstrapKubeConfigs{Type: operatorv1.LocalSecrets, LocalSecrets: local},
		}
	}
}

func TestCheckAccepts(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Facts){
		"a lost cluster":                    func(*Facts) {},
		"a loss that the user accepts":      func(f *Facts) { f.OnEvictedWorks = api.EvictedWorksAccept },
		"nothing to lose, without a choice": func(f *Facts) { f.OnEvictedWorks, f.Works = "", nil },
		"one that a user has created":       func(f *Facts) { f.Managed = managed("", false, false) },
		"hubs of a migration":               severalHubs(klusterlet.SourceSecret, klusterlet.TargetSecret),
		"hubs of an import controller": func(f *Facts) {
			f.Managed = managed("m", true, false)
			severalHubs("bootstrap-hub2", "bootstrap-hub-kubeconfig-current-hub")(f)
		},
		"a hub that answers again": func(f *Facts) { f.Answers, f.Bootstrap = true, kubeconfigOf(t, newHub, true) },
	} {
		f := lostFacts(t)
		change(&f)
		if err := Check(f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReleased: what the klusterlet lives on stays whatever the user chooses, and what the add-on of another hub applies again goes.
//
// Matrix: H106.
func TestReleased(t *testing.T) {
	t.Parallel()
	f := lostFacts(t)
	f.Works = append(f.Works,
		workOf(lostHub, "c1-klusterlet", "operator.open-cluster-management.io", "klusterlets", "", "klusterlet"),
		workOf(lostHub, "c1-klusterlet-crds", "apiextensions.k8s.io", "customresourcedefinitions", "", "klusterlets.operator.open-cluster-management.io"),
		workOf(lostHub, "pull", "", "secrets", klusterlet.DefaultNamespace, "pull"),
		workOf(lostHub, "operator", "", "namespaces", "", operatorNamespace),
		workOf(lostHub, klusterlet.WorkName, "rbac.authorization.k8s.io", "clusterroles", "", "godwit:klusterlet"),
		workOf(lostHub, "addon-search-deploy-0", "apps", "deployments", "addons", "search"),
		workOf(newHub, "new", "apps", "deployments", "shop", "new"),
		workOf(lostHub, "foreign", "apps", "deployments", "shop", "foreign"))
	f.Works[len(f.Works)-1].Spec.AgentID = "another klusterlet"
	always := []string{"c1-klusterlet", "c1-klusterlet-crds", "pull", "operator", klusterlet.WorkName}
	for choice, want := range map[api.EvictedWorksPolicy][]string{
		api.EvictedWorksOrphan: append([]string{"shop"}, always...),
		api.EvictedWorksAccept: always,
	} {
		f.OnEvictedWorks = choice
		var got []string
		for _, w := range f.Released() {
			got = append(got, w.Spec.ManifestWorkName)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: released works (-want +got):\n%s", choice, diff)
		}
	}
	if diff := cmp.Diff([]string{"shop"}, f.Evictable()); diff != "" {
		t.Errorf("works that a user loses (-want +got):\n%s", diff)
	}
}

// TestRecord: a Klusterlet has its former settings in the end, and what a user has set since stays.
//
// Matrix: H106.
func TestRecord(t *testing.T) {
	t.Parallel()
	hour := &metav1.Duration{Duration: time.Hour}
	for name, test := range map[string]struct {
		before, after *operatorv1.WorkAgentConfiguration
		change        func(*operatorv1.Klusterlet)
	}{
		"nothing":        {nil, nil, func(k *operatorv1.Klusterlet) { k.Spec.WorkConfiguration.KubeAPIQPS = 50; setDefaults(k) }},
		"a period":       {&operatorv1.WorkAgentConfiguration{AppliedManifestWorkEvictionGracePeriod: hour}, &operatorv1.WorkAgentConfiguration{AppliedManifestWorkEvictionGracePeriod: hour}, nil},
		"other settings": {&operatorv1.WorkAgentConfiguration{KubeAPIQPS: 7}, &operatorv1.WorkAgentConfiguration{KubeAPIQPS: 7}, nil},
		"set since": {nil, &operatorv1.WorkAgentConfiguration{AppliedManifestWorkEvictionGracePeriod: hour},
			func(k *operatorv1.Klusterlet) { k.Spec.WorkConfiguration.AppliedManifestWorkEvictionGracePeriod = hour }},
	} {
		k := &operatorv1.Klusterlet{Spec: operatorv1.KlusterletSpec{WorkConfiguration: test.before.DeepCopy()}}
		var r Record
		r.protect(k)
		r.protect(k) // again
		if err := r.save(k); err != nil || !isProtected(k) {
			t.Fatalf("%s: protected %v, %v", name, isProtected(k), err)
		}
		if test.change != nil {
			test.change(k)
		}
		r, err := recordOf(k)
		if err != nil {
			t.Fatal(err)
		}
		r.restore(k)
		if err := r.save(k); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.after, k.Spec.WorkConfiguration); diff != "" || k.Annotations != nil {
			t.Errorf("%s: annotations %v, configuration (-want +got):\n%s", name, k.Annotations, diff)
		}
	}
}

func setDefaults(k *operatorv1.Klusterlet) {
	w := k.Spec.WorkConfiguration
	w.KubeAPIQPS, w.KubeAPIBurst, w.HubKubeAPIQPS, w.HubKubeAPIBurst = 50, 100, 50, 100
}
