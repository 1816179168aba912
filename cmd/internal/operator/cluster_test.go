package operator

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/serving"
	"github.com/godwit-dev/godwit/crdmigrator"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// plane is shared by the tests, each of which has a group and a manager of its own. Its
// API server admits owner references as OpenShift's does: the manager's own permissions
// are enough there, too.
// They take turns, since a manager takes every CRDMigration for its own. Tests that
// last, or hurt the control plane, start another and run beside them.
var (
	plane *controlplane.ControlPlane
	turn  sync.Mutex
)

// beTheManager in the environment makes a manager of the test's binary: a process
// of its own is what a cluster runs, and what can be killed.
const beTheManager = "TEST_BE_THE_MANAGER"

// electIn names the namespace of its lease; without it there is no election.
const electIn = "TEST_ELECT_IN"

func TestMain(m *testing.M) {
	if file, ok := os.LookupEnv(beTheManager); ok {
		os.Exit(runManager(file))
	}
	controlplane.Parallel(32)     // those that wait for their turn or for a place run, too
	log.SetLogger(logr.Discard()) // managers are processes of their own, and say what they say there
	enforced := controlplane.Options{APIServerArgs: []string{controlplane.EnforceOwnerReferences}}
	os.Exit(enforced.Main(m, &plane, installOwnKinds))
}

// runManager is the life of such a process.
func runManager(configFile string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	logger := zap.New(zap.WriteTo(os.Stderr))
	log.SetLogger(logger)
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err == nil {
		namespace, elects := os.LookupEnv(electIn)
		err = Run(logr.NewContext(ctx, logger), cfg, Options{
			ConfigFile: configFile, Process: serving.Options{MetricsAddress: "0", HealthAddress: "0", LeaderElection: elects, Namespace: namespace},
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func installOwnKinds(ctx context.Context, plane *controlplane.ControlPlane) error {
	crds, err := controlplane.ReadCRDs("../../../api/v1alpha1/crd/*.yaml")
	if err != nil {
		return err
	}
	return controlplane.InstallCRDs(ctx, plane.Config(), crds...)
}

// cluster is a test's own corner of the control plane: a group, and what is in it.
type cluster struct {
	client.Client
	t     *testing.T
	plane *controlplane.ControlPlane
	group string
}

var corners atomic.Int64

// newCluster waits for the test's turn on the shared plane.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	t.Parallel()
	turn.Lock()
	t.Cleanup(turn.Unlock)
	return newClusterOn(t, plane)
}

func newClusterOn(t *testing.T, plane *controlplane.ControlPlane) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(plane.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	return &cluster{Client: c, t: t, plane: plane, group: fmt.Sprintf("%s-%d.example.com", name, corners.Add(1))}
}

func version(name string, served, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
	return apiextensionsv1.CustomResourceDefinitionVersion{
		Name: name, Served: served, Storage: storage,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
	}
}

// define installs a CRD with v1 alone, and n objects.
func (c *cluster) define(plural string, n int, labels map[string]string) string {
	c.t.Helper()
	kind := strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + c.group, Labels: labels},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: c.group, Scope: apiextensionsv1.ClusterScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true, true)},
		},
	}
	if err := controlplane.InstallCRDs(c.t.Context(), c.plane.Config(), crd); err != nil {
		c.t.Fatal(err)
	}
	for i := range n {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: c.group, Version: "v1", Kind: kind})
		o.SetName(fmt.Sprintf("o-%04d", i))
		if err := c.Create(c.t.Context(), o); err != nil {
			c.t.Fatal(err)
		}
	}
	return crd.Name
}

// flip makes v2 the storage version.
func (c *cluster) flip(crd string) {
	c.t.Helper()
	_, err := controlplane.UpdateCRD(c.t.Context(), c.plane.Config(), crd, func(there *apiextensionsv1.CustomResourceDefinition) {
		there.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", true, false), version("v2", true, true)}
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) mustBeStored(crd string, want map[string]int) {
	c.t.Helper()
	for v, n := range want {
		if got := c.stored(crd, v); got != n {
			c.t.Errorf("etcd holds %d objects of %s at %s, want %v", got, crd, v, want)
		}
	}
}

// stored counts the objects that etcd holds at a version.
func (c *cluster) stored(crd, version string) int {
	c.t.Helper()
	plural, group, _ := strings.Cut(crd, ".")
	counts, err := c.plane.CountStored(c.t.Context(), group, plural)
	if err != nil {
		c.t.Fatal(err)
	}
	return counts[group+"/"+version]
}

// awaitLimit is for a busy machine.
const awaitLimit = 5 * time.Minute

// await polls until the condition is true, less often the longer it takes.
func (c *cluster) await(what string, holds func() bool) {
	c.t.Helper()
	pause, deadline := 50*time.Millisecond, time.Now().Add(awaitLimit)
	for !holds() {
		if time.Now().After(deadline) {
			c.t.Fatalf("waited %v for %s", awaitLimit, what)
		}
		time.Sleep(pause)
		pause = min(pause*5/4, 400*time.Millisecond)
	}
}

// migration is a CRDMigration as it is now; nil if there is none.
func (c *cluster) migration(name string) *v1alpha1.CRDMigration {
	c.t.Helper()
	m := &v1alpha1.CRDMigration{}
	err := c.Get(c.t.Context(), client.ObjectKey{Name: name}, m)
	if client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return m
}

// awaitReason waits until a condition Ready has a reason.
func (c *cluster) awaitReason(name, reason string) *v1alpha1.CRDMigration {
	c.t.Helper()
	var m *v1alpha1.CRDMigration
	defer func() {
		if c.t.Failed() && m != nil {
			c.t.Logf("status: %+v", m.Status)
		}
	}()
	c.await("crdmigration "+name+" to be "+reason, func() bool {
		if m = c.migration(name); m == nil {
			return false
		}
		ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
		return ready != nil && ready.Reason == reason
	})
	return m
}

// process is a manager under way.
type process struct {
	*exec.Cmd
	t      *testing.T
	stderr *bytes.Buffer // to be read once it has ended
	ended  chan error
}

// manage starts a manager with a configuration's text. It ends with the test.
func (c *cluster) manage(configuration string) *process {
	c.t.Helper()
	return c.manageAs(c.plane.Config(), configuration)
}

// command is a manager's, as a user, with more of an environment.
func (c *cluster) command(user *rest.Config, configuration string, env ...string) func() *exec.Cmd {
	c.t.Helper()
	if !strings.Contains(configuration, "limits:") {
		configuration += "\nlimits: {maxWritesPerSecond: 0}\n" // no other client needs the API server
	}
	file := filepath.Join(c.t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: "+ConfigurationVersion+"\nkind: "+ConfigurationKind+"\n"+configuration), 0o600); err != nil {
		c.t.Fatal(err)
	}
	kubeconfig := filepath.Join(c.t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, user); err != nil {
		c.t.Fatal(err)
	}
	return func() *exec.Cmd {
		command := exec.Command(os.Args[0])
		command.Env = append(append(os.Environ(), beTheManager+"="+file, "KUBECONFIG="+kubeconfig), env...)
		return command
	}
}

// manageAs starts a manager as a user, with more of an environment.
func (c *cluster) manageAs(user *rest.Config, configuration string, env ...string) *process {
	c.t.Helper()
	p := &process{Cmd: c.command(user, configuration, env...)(), t: c.t, stderr: &bytes.Buffer{}, ended: make(chan error, 1)}
	p.Stderr = p.stderr
	if err := p.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() { p.ended <- p.Wait() }()
	c.t.Cleanup(func() {
		p.end(syscall.SIGTERM)
		if c.t.Failed() {
			c.t.Log(p.stderr.String())
		}
	})
	return p
}

// end sends a signal and waits for the end. Again, it does nothing.
func (p *process) end(signal os.Signal) {
	p.t.Helper()
	if p.ended == nil {
		return
	}
	_ = p.Process.Signal(signal)
	if err := <-p.ended; err != nil && signal != syscall.SIGKILL {
		p.t.Errorf("the manager ended with %v", err)
	}
	p.ended = nil
}

func objectMeta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

var optedIn = map[string]string{crdmigrator.AutoMigrateLabel: crdmigrator.AutoMigrateValue}

// mustEnd ends it as a cluster does.
func (p *process) mustEnd() {
	p.t.Helper()
	p.end(syscall.SIGTERM)
}

// revisions counts how often the objects of a CRD were written, as etcd
// has it.
func (c *cluster) revisions(crd string) int64 {
	c.t.Helper()
	plural, group, _ := strings.Cut(crd, ".")
	got, err := c.plane.Etcd().Get(c.t.Context(), "/registry/"+group+"/"+plural+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		c.t.Fatal(err)
	}
	var n int64
	for _, pair := range got.Kvs {
		n += pair.Version
	}
	return n
}

func (c *cluster) suspend(name string, suspend bool) {
	c.t.Helper()
	c.patch(name, fmt.Sprintf(`{"spec":{"suspend":%v}}`, suspend))
}

// patch merges into a CRDMigration.
func (c *cluster) patch(name, merge string) {
	c.t.Helper()
	m := &v1alpha1.CRDMigration{ObjectMeta: objectMeta(name)}
	if err := c.Patch(c.t.Context(), m, client.RawPatch(types.MergePatchType, []byte(merge))); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) unlabel(crd string) {
	c.t.Helper()
	_, err := controlplane.UpdateCRD(c.t.Context(), c.plane.Config(), crd, func(there *apiextensionsv1.CustomResourceDefinition) { there.Labels = nil })
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) storedVersions(crd string) string {
	c.t.Helper()
	there := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(c.t.Context(), client.ObjectKey{Name: crd}, there); err != nil {
		c.t.Fatal(err)
	}
	return strings.Join(there.Status.StoredVersions, ",")
}
