package operator

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	hubapi "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	hubmanager "github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
)

// globalHub is a control plane with the kinds of a global hub, and a broker.
type globalHub struct {
	*cluster
	hubs   client.Client // knows the kinds of hubs
	broker *kfake.Cluster
}

const ocmTypes = "open-cluster-management.io/api@v1.3.0"

func newGlobalHub(t *testing.T) *globalHub {
	t.Helper()
	c := newCluster(t)
	dir, err := gomodule.Dir(t.Context(), ocmTypes)
	if err != nil {
		t.Fatal(err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, pattern := range []string{
		"../../hub/api/v1alpha1/crd/*.yaml", "../../../test/hub/testdata/crds/import.yaml",
		filepath.Join(dir, "cluster", "v1", "*managedclusters.crd.yaml"), filepath.Join(dir, "addon", "v1alpha1", "*_managedclusteraddons.crd.yaml"),
	} {
		some, err := controlplane.ReadCRDs(pattern)
		if err != nil {
			t.Fatal(err)
		}
		crds = append(crds, some...)
	}
	for _, crd := range crds {
		if err := controlplane.InstallCRDs(t.Context(), c.plane.Config(), crd); err != nil && !strings.Contains(err.Error(), "already exists") {
			t.Fatal(err)
		}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.Install, hubapi.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	g := &globalHub{cluster: c}
	if g.hubs, err = client.New(c.plane.Config(), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if g.broker, err = kfake.NewCluster(kfake.NumBrokers(1)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.broker.Close)
	return g
}

// configuration has the broker.
func (g *globalHub) configuration() string {
	return "clusterMigration: {kafka: {plaintext: true, brokers: ['" + strings.Join(g.broker.ListenAddrs(), "', '") + "']}}"
}

func (g *globalHub) create(o client.Object) {
	g.t.Helper()
	if err := g.hubs.Create(g.t.Context(), o); err != nil {
		g.t.Fatal(err)
	}
}

// hub makes a hub whose agent reports that every order is done, as the manager sends it.
func (g *globalHub) hub(name string, manager message.IdentityKey) message.Identity {
	g.t.Helper()
	mc := &clusterv1.ManagedCluster{ObjectMeta: objectMeta(name)}
	mc.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: g.plane.Config().Host}}
	g.create(mc)
	meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue, Reason: "Available"})
	if err := g.hubs.Status().Update(g.t.Context(), mc); err != nil {
		g.t.Fatal(err)
	}
	if err := g.hubs.Create(g.t.Context(), &corev1.Namespace{ObjectMeta: objectMeta(name)}); err != nil && !apierrors.IsAlreadyExists(err) {
		g.t.Fatal(err)
	}
	own, err := message.NewIdentity()
	if err != nil {
		g.t.Fatal(err)
	}
	transport, err := kafka.New(kafka.Options{Brokers: g.broker.ListenAddrs(), ClientID: name})
	if err != nil {
		g.t.Fatal(err)
	}
	a := &answering{t: g.t, hub: name, own: own, manager: manager, transport: transport}
	ctx, cancel := context.WithCancel(g.t.Context())
	ended := make(chan struct{}, 2)
	go func() { defer func() { ended <- struct{}{} }(); a.beat(ctx) }()
	go func() { defer func() { ended <- struct{}{} }(); a.answer(ctx) }()
	g.t.Cleanup(func() { cancel(); <-ended; <-ended; transport.Close() })
	return own
}

// answering is an agent that changes nothing.
type answering struct {
	t         *testing.T
	hub       string
	own       message.Identity
	manager   message.IdentityKey
	transport *kafka.Transport
}

func (a *answering) beat(ctx context.Context) {
	for ctx.Err() == nil {
		a.send(ctx, message.Header{Type: message.TypeHeartbeat}, message.Heartbeat{Hub: a.hub, Versions: []int{message.Version}})
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// send leaves out errors: until the manager has made the topics, there are some.
func (a *answering) send(ctx context.Context, h message.Header, bundle any) {
	h.From, h.To, h.ValidFor = a.hub, message.ManagerName, time.Minute
	data, err := message.Encode(bundle)
	if err != nil {
		a.t.Error(err)
		return
	}
	e, err := message.Write(h, data, a.own, nil)
	if err != nil {
		a.t.Error(err)
		return
	}
	_ = a.transport.Send(ctx, message.StatusTopic(a.hub), a.hub, e)
}

func (a *answering) answer(ctx context.Context) {
	key, err := message.NewOpeningKey()
	if err != nil {
		a.t.Error(err)
		return
	}
	for ctx.Err() == nil {
		_ = a.transport.Receive(ctx, a.hub, []string{message.SpecTopic(a.hub)}, func(ctx context.Context, _ string, e message.Envelope) error {
			h, data, err := message.Read(e, a.hub, a.manager, nil)
			if err != nil {
				a.t.Error(err)
				return nil
			}
			var b struct{ Command hub.Command } // of the source or of the target
			if err := json.Unmarshal(data, &b); err != nil {
				a.t.Error(err)
				return nil
			}
			status := message.StatusBundle{Finished: true, SealingKey: key.Key().Bytes()}
			for _, o := range b.Command.Orders {
				status.Done = append(status.Done, o.Clusters...)
			}
			a.send(ctx, message.Header{Type: message.TypeStatus, Migration: h.Migration, Stage: h.Stage, Attempt: h.Attempt}, status)
			return nil
		})
	}
}

// TestClusterMigrationRunsWithItsOwnRole: from the creation of a migration to its deletion, with
// a ManagedServiceAccount, and with no permission but those of the role.
func TestClusterMigrationRunsWithItsOwnRole(t *testing.T) {
	g := newGlobalHub(t)
	namespace, user := g.serviceAccountOf(ClusterMigration, func(rbacv1.PolicyRule) bool { return false })
	g.mustMove("role", namespace, user)
}

// TestClusterMigrationReadsFewSecrets: docs/explanation/hub-security.md says how a user lets the manager read
// Secrets in the namespaces of target hubs alone.
func TestClusterMigrationReadsFewSecrets(t *testing.T) {
	g := newGlobalHub(t)
	namespace, user := g.serviceAccountOf(ClusterMigration, func(r rbacv1.PolicyRule) bool {
		return slices.Equal(r.APIGroups, []string{""}) && slices.Equal(r.Resources, []string{"secrets"}) && slices.Equal(r.Verbs, []string{"get"})
	})
	const to = "few-hub2"
	g.create(&corev1.Namespace{ObjectMeta: objectMeta(to)})
	metadata := metav1.ObjectMeta{Namespace: to, Name: "godwit-tokens"}
	g.create(&rbacv1.Role{ObjectMeta: metadata, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}})
	g.create(&rbacv1.RoleBinding{
		ObjectMeta: metadata, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: metadata.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: namespace}},
	})
	as, err := client.New(user, client.Options{Scheme: g.hubs.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for where, allowed := range map[string]bool{to: true, namespace: true, metav1.NamespaceSystem: false} {
		err := as.Get(t.Context(), client.ObjectKey{Namespace: where, Name: "other"}, &corev1.Secret{})
		if apierrors.IsForbidden(err) == allowed {
			t.Errorf("the manager may read Secrets in namespace %s: %v, want %v: %v", where, !allowed, allowed, err)
		}
	}
	g.mustMove("few", namespace, user)
}

// mustMove runs the manager as a user, from the creation of a migration to its deletion. Names of its hubs and
// clusters begin with the prefix.
func (g *globalHub) mustMove(prefix, namespace string, user *rest.Config) {
	t := g.t
	t.Helper()
	own, err := identity.Ensure(t.Context(), g.hubs, g.hubs, identity.Owner{Namespace: namespace, Name: message.ManagerName})
	if err != nil {
		t.Fatal(err)
	}
	from, to := prefix+"-hub1", prefix+"-hub2"
	g.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: hubmanager.EnrolledHubs}, Data: map[string]string{
		from: identity.Format(g.hub(from, own.Key()).Key()), to: identity.Format(g.hub(to, own.Key()).Key()),
	}})
	p := g.manageAs(user, g.configuration(), EnableVariable+"=false", EnableClusterMigration+"=true", electIn+"="+namespace)
	migration := &hubapi.ManagedClusterMigration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "move"}}
	migration.Spec = hubapi.ManagedClusterMigrationSpec{From: hubapi.HubName(from), To: hubapi.HubName(to), IncludedManagedClusters: []hubapi.ClusterName{hubapi.ClusterName(prefix + "-site1"), hubapi.ClusterName(prefix + "-site2")}}
	g.create(migration)
	key := client.ObjectKeyFromObject(migration)

	accounts := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "authentication.open-cluster-management.io/v1beta1", "kind": "ManagedServiceAccountList"}}
	g.await("the ManagedServiceAccount", func() bool {
		return g.hubs.List(t.Context(), accounts, client.InNamespace(to)) == nil && len(accounts.Items) == 1
	})
	g.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: to, Name: accounts.Items[0].GetName()}, Data: map[string][]byte{"token": []byte("t"), "ca.crt": g.plane.Config().CAData}})
	g.await("the clusters to have moved", func() bool {
		return g.hubs.Get(t.Context(), key, migration) == nil && meta.IsStatusConditionTrue(migration.Status.Conditions, hubapi.ConditionReady)
	})
	if err := g.hubs.List(t.Context(), accounts, client.InNamespace(to)); err != nil || len(accounts.Items) > 0 {
		t.Errorf("%d ManagedServiceAccounts are left: %v", len(accounts.Items), err)
	}
	if err := g.hubs.Delete(t.Context(), migration); err != nil {
		t.Fatal(err)
	}
	g.await("the migration to go", func() bool { return apierrors.IsNotFound(g.hubs.Get(t.Context(), key, migration)) })
	p.mustEnd()
	for line := range strings.Lines(p.stderr.String()) {
		if strings.Contains(line, "is forbidden") {
			t.Errorf("a permission is missing: %s", line)
		}
	}
}

// TestClusterMigrationRefusesToStart with a message that says what to do.
func TestClusterMigrationRefusesToStart(t *testing.T) {
	g := newGlobalHub(t)
	enabled := []string{EnableVariable + "=false", EnableClusterMigration + "=true", electIn + "=default"}
	own := func(value string) {
		t.Helper()
		if _, err := controlplane.UpdateCRD(t.Context(), g.plane.Config(), hubapi.CRDName, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Annotations[hubapi.OwnerAnnotation] = value
		}); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		reason        string
		configuration string
		env           []string
		owner         string
		want          string
	}{
		"NoBroker":    {"The manager reaches no agent.", "", enabled, hubapi.Owner, "clusterMigration.kafka.brokers=HOST:PORT"},
		"NoNamespace": {"The keys of the manager are in its namespace.", g.configuration(), enabled[:2], hubapi.Owner, "--leader-elect-namespace=NAMESPACE"},
		"ForeignCRD":  {"The controller of another project acts on the same objects.", g.configuration(), enabled, "other", "is another project's"},
	} {
		own(test.owner)
		out, err := g.command(g.plane.Config(), test.configuration, test.env...)().CombinedOutput()
		if err == nil || !strings.Contains(string(out), test.want) {
			t.Errorf("%s: %s The manager ends with %v, want %q:\n%s", name, test.reason, err, test.want, out)
		}
	}
	own(hubapi.Owner)
}

// TestControllersAreNamedWithoutRegardToCase: clustermigration is clusterMigration.
func TestControllersAreNamedWithoutRegardToCase(t *testing.T) {
	got, err := enabled([]string{"clustermigration", "revisionupgrader"}, os.LookupEnv)
	if err != nil || strings.Join(got, ",") != ClusterMigration+","+RevisionUpgrader {
		t.Errorf("%v, %v", got, err)
	}
}
