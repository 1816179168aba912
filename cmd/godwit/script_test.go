package main

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
)

func TestMain(m *testing.M) {
	testscript.Main(parallel{m}, map[string]func(){"godwit": scripted, "kubectl-godwit": scripted})
}

// parallel runs more scripts at once than the machine has cores, because they wait more than they work.
type parallel struct{ *testing.M }

func (m parallel) Run() int {
	controlplane.Parallel(4)
	return m.M.Run()
}

// clockOffset is a variable of a script: by how much the clock of the program is
// ahead of the machine's. What is said of a time depends on the day and not on the
// hour at which the test runs.
const clockOffset = "CLOCK_OFFSET"

// scripted is main with the clock that the script has set.
func scripted() {
	offset, err := time.ParseDuration(cmp.Or(os.Getenv(clockOffset), "0s"))
	if err != nil {
		panic(err)
	}
	os.Exit(run(offsetClock(offset)))
}

// offsetClock runs ahead of the real one.
type offsetClock time.Duration

func (c offsetClock) Now() time.Time                  { return time.Now().Add(time.Duration(c)) }
func (c offsetClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// The scripts of a folder share a control plane, run in parallel, and keep to a
// group of custom resources of their own.
func TestScripts(t *testing.T) { runScripts(t, "script", controlplane.Options{}, nil) }

// Commands that read all objects of a cluster have one in which each API group is served, and each object can be read.
func TestWholeCluster(t *testing.T) { runScripts(t, "wholecluster", controlplane.Options{}, nil) }

// Objects that no client can list have a cluster to themselves: other commands read all objects of a cluster.
func TestConverters(t *testing.T) { runScripts(t, "converter", controlplane.Options{}, nil) }

// What makes all API servers of a cluster look unsettled has a cluster to itself.
func TestStaleLease(t *testing.T) { runScripts(t, "stalelease", controlplane.Options{}, nil) }

// The scripts of a folder share a control plane with KubeVirt's API, and keep to a
// namespace of their own.
func TestRevisions(t *testing.T) { runScripts(t, "revision", controlplane.Options{}, cluster.Install) }

// What is said of a whole cluster has one to itself.
func TestRevisionsOfCluster(t *testing.T) {
	runScripts(t, "revisions", controlplane.Options{}, cluster.Install)
}

// A plan is of a whole cluster, with the kinds of all domains.
func TestPlan(t *testing.T) {
	runScripts(t, "plan", controlplane.Options{}, func(ctx context.Context, config *rest.Config) error {
		return errors.Join(cluster.Install(ctx, config), installHub(ctx, config))
	})
}

// An audit is of all managed resources of a cluster.
func TestAudit(t *testing.T) { runScripts(t, "audit", controlplane.Options{}, nil) }

// OpenShift checks who makes the deletion of an owner wait.
func TestRevisionsUnderOwnerReferencesPermissionEnforcement(t *testing.T) {
	enforced := controlplane.Options{APIServerArgs: []string{controlplane.EnforceOwnerReferences}}
	runScripts(t, "enforced", enforced, cluster.Install)
}

func runScripts(t *testing.T, folder string, o controlplane.Options, install func(context.Context, *rest.Config) error, more ...func(*testscript.Env) error) {
	t.Parallel()
	started := onFirstUse(t, o, install)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", folder),
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			plane, err := started()
			if err != nil {
				return err
			}
			if err := setUp(e, plane); err != nil {
				return err
			}
			for _, add := range more {
				if err := add(e); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"crd":           command(installCRD),
			"crds":          command(installCRDs),
			"objects":       command(createObjects),
			"delete":        command(deleteCRD),
			"apply":         command(applyObject),
			"adopted":       command(awaitAdopted),
			"migrating":     command(awaitFirstAt),
			"aged":          command(ageCRD),
			"converter":     command(converter),
			"deny":          command(deny),
			"allow":         command(allow),
			"proxy":         command(proxy),
			"user":          command(addUser),
			"grant":         command(grantRight),
			"administrator": command(administrator),

			"members":   command(installMembers),
			"member":    command(createMember),
			"provider":  command(runProvider),
			"annotate":  command(annotateMember),
			"annotated": command(checkAnnotation),

			"create":     command(createFile),
			"finished":   command(finishMigration),
			"heartbeats": command(publishHeartbeats),
			"lease":      command(setLease),
			"etcdput":    command(putIntoEtcd),
			"exits":      command(exits),
			"terminal":   command(terminal),
			"golden":     command(golden),

			"machine":      command(createMachine),
			"snapshot":     command(createSnapshot),
			"stopped":      command(stopMachine),
			"unreferenced": command(ageRevision),
			"refers":       command(checkReferences),
			"gone":         command(checkGone),
			"spoil":        command(spoil),
			"paste":        command(paste),
			"stores":       command(storeAt),
		},
	})
}

// onFirstUse returns a control plane that the first script to ask for it starts, and that stops after the last script of t.
// Scripts of all folders wait for their turn together, and a control plane takes CPU time while its scripts wait.
func onFirstUse(
	t *testing.T, o controlplane.Options, install func(context.Context, *rest.Config) error,
) func() (*controlplane.ControlPlane, error) {
	return sync.OnceValues(func() (*controlplane.ControlPlane, error) {
		plane, err := controlplane.Start(t.Context(), o)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() {
			if err := plane.Stop(); err != nil {
				t.Error(err)
			}
		})
		if install != nil {
			err = install(t.Context(), plane.Config())
		}
		return plane, err
	})
}

// clusterKey is where a script's environment holds its control plane.
type clusterKey struct{}

func clusterOf(ts *testscript.TestScript) *controlplane.ControlPlane {
	return ts.Value(clusterKey{}).(*controlplane.ControlPlane)
}

// command gives each command what it needs, and makes its error that of the
// script's line.
func command(run func(*testscript.TestScript, []string) error) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("this command takes no !")
		}
		ts.Check(run(ts, args))
	}
}

// setUp gives the script its group, which is also the value of the label
// "script" on its CRDs, its namespace, and servers that are no API servers.
func setUp(e *testscript.Env, plane *controlplane.ControlPlane) error {
	name := strings.ReplaceAll(filepath.Base(e.WorkDir), "script-", "")
	group := name + ".example.com"
	kubeconfig := filepath.Join(e.WorkDir, "admin.kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, plane.Config()); err != nil {
		return err
	}
	others, err := newOtherServers(e)
	if err != nil {
		return err
	}
	programs, err := programsFolder()
	if err != nil {
		return err
	}
	e.Setenv("PATH", e.Getenv("PATH")+string(os.PathListSeparator)+programs)
	e.Values[clusterKey{}] = plane
	newConversionWebhook(e)
	e.Setenv("GROUP", group)
	e.Setenv("KUBECONFIG", kubeconfig)
	e.Setenv("NS", name)
	e.Setenv("SERVER", plane.Config().Host)
	e.Setenv("ETCD", plane.EtcdEndpoint())
	e.Setenv("WEBSERVER", others.web)
	e.Setenv("HANGING", others.hanging)
	e.Setenv("ENDLESS", others.endless)
	e.Setenv("TERM", "xterm-256color")
	return nil
}

// otherServers are the URLs of servers that are no API servers, or no good ones.
type otherServers struct {
	web     string // says hello
	hanging string // accepts connections and never answers
	endless string // an API server, each of whose lists goes on after a second, so that nothing is ever read
}

func newOtherServers(e *testscript.Env) (otherServers, error) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return otherServers{}, err
	}
	e.Defer(func() { _ = mute.Close() })
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<html>welcome</html>"))
	}))
	e.Defer(web.Close)
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			_, _ = w.Write([]byte(`{"gitVersion": "v1.36.0"}`))
			return
		}
		select {
		case <-r.Context().Done():
		case <-time.After(time.Second):
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind": "CustomResourceDefinitionList", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"continue": "more"}, "items": []}`))
		}
	}))
	e.Defer(endless.Close)
	return otherServers{web: web.URL, hanging: "http://" + mute.Addr().String(), endless: endless.URL}, nil
}
