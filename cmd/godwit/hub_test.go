package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	"github.com/godwit-dev/godwit/cmd/hub/manager"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/test/controlplane"
	simulation "github.com/godwit-dev/godwit/test/hub"
)

// The scripts of a folder share a global hub, which is also the source hub, and a target hub. Each keeps
// to clusters of its own.
func TestClusters(t *testing.T) {
	target := onFirstUse(t, controlplane.Options{}, installHub)
	runScripts(t, "cluster", controlplane.Options{}, installHub, func(e *testscript.Env) error {
		plane, err := target()
		if err != nil {
			return err
		}
		return addContext(e, plane)
	})
}

func installHub(ctx context.Context, config *rest.Config) error {
	return simulation.InstallCRDs(ctx, config)
}

// targetContext is the context of the target hub in a script's kubeconfig.
const targetContext = "target"

// addContext adds the target hub to the kubeconfig of a script.
func addContext(e *testscript.Env, target *controlplane.ControlPlane) error {
	path := e.Getenv("KUBECONFIG")
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return err
	}
	other := filepath.Join(e.WorkDir, "target.kubeconfig")
	if err := controlplane.WriteKubeconfig(other, target.Config()); err != nil {
		return err
	}
	more, err := clientcmd.LoadFromFile(other)
	if err != nil {
		return err
	}
	from := more.Contexts[more.CurrentContext]
	config.Clusters[targetContext], config.AuthInfos[targetContext] = more.Clusters[from.Cluster], more.AuthInfos[from.AuthInfo]
	from.Cluster, from.AuthInfo = targetContext, targetContext
	config.Contexts[targetContext] = from
	for _, name := range []string{"KEY", "OTHERKEY"} {
		key, err := newKey()
		if err != nil {
			return err
		}
		e.Setenv(name, key)
	}
	e.Setenv("TARGET", "--context="+targetContext)
	e.Setenv("TARGETSERVER", target.Config().Host)
	e.Setenv("TARGETCAFILE", filepath.Join(e.WorkDir, "target.ca"))
	if err := os.WriteFile(e.Getenv("TARGETCAFILE"), target.Config().CAData, 0o600); err != nil {
		return err
	}
	e.Setenv("TARGETCA", base64.StdEncoding.EncodeToString(target.Config().CAData))
	return clientcmd.WriteToFile(*config, path)
}

// newKey is the public key of an agent.
func newKey() (string, error) {
	own, err := message.NewIdentity()
	return identity.Format(own.Key()), err
}

// create FILE [CONTEXT...]: applies the objects of a file, in which $VARIABLES are replaced, and their status.
func createFile(ts *testscript.TestScript, args []string) error {
	contexts := args[1:]
	if len(contexts) == 0 {
		contexts = []string{""} // the current one
	}
	path := ts.MkAbs("object.yaml")
	for document := range strings.SplitSeq(ts.ReadFile(args[0]), "\n---\n") {
		text := os.Expand(document, ts.Getenv)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		for _, kubeContext := range contexts {
			apply := []string{"apply", "--server-side", "--force-conflicts", "--context=" + kubeContext, "-f", path}
			if err := ts.Exec("kubectl", apply...); err != nil {
				return fmt.Errorf("%w:\n%s", err, text)
			}
			if !strings.Contains(text, "\nstatus:") {
				continue
			}
			if err := ts.Exec("kubectl", append(apply, "--subresource=status")...); err != nil {
				return fmt.Errorf("%w:\n%s", err, text)
			}
		}
	}
	return nil
}

// heartbeats HUB=AGE...: plays the manager in $NS, which has received the heartbeats of hubs some time ago.
func publishHeartbeats(ts *testscript.TestScript, args []string) error {
	now := time.Now().UTC()
	all := manager.Receipts{Published: now, Hubs: map[string]manager.Receipt{}}
	for _, arg := range args {
		name, age, _ := strings.Cut(arg, "=")
		ago, err := time.ParseDuration(age)
		if err != nil {
			return err
		}
		all.Hubs[name] = manager.Receipt{CaughtUp: now.Add(-time.Hour), Heartbeat: now.Add(-ago), Versions: []int{message.Version}}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	path := ts.MkAbs("heartbeats.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: %s, name: %s}\ndata: {receipts: %q}\n", ts.Getenv("NS"), manager.HubHeartbeats, text), 0o600); err != nil {
		return err
	}
	return ts.Exec("kubectl", "apply", "--server-side", "--force-conflicts", "-f", path)
}

// finished NAME PHASE CLUSTER=STATE...: plays the manager, which has brought a migration of $NS to a phase. A
// cluster that is not Moved has a message.
func finishMigration(ts *testscript.TestScript, args []string) error {
	ctx, key := context.Background(), client.ObjectKey{Namespace: ts.Getenv("NS"), Name: args[0]}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
		return err
	}
	c, err := client.New(clusterOf(ts).Config(), client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	m := &api.ManagedClusterMigration{}
	if err := eventually(func() error { return c.Get(ctx, key, m) }); err != nil {
		return err
	}
	now := time.Now().Truncate(time.Second)
	state := hub.New(m.Spec)
	state.Phase, state.Stage, state.Since, state.Clusters = api.Phase(args[1]), api.PhaseCleaning, now, nil
	if state.Phase == api.PhaseFailed {
		state.Stage, state.RollbackStage = api.PhaseRollbacking, api.PhaseRegistering
	}
	for _, arg := range args[2:] {
		name, is, _ := strings.Cut(arg, "=")
		one := hub.Cluster{Name: name, State: hub.ClusterState(is), Since: now}
		if one.State != hub.Moved {
			one.FailedIn, one.Failure = api.PhaseRegistering, hub.Failure{Reason: "NotInTime", Message: name + " was waiting for a lease"}
		}
		state.Clusters = append(state.Clusters, one)
	}
	shards := state.Shards(m.Name)
	for _, shard := range shards {
		owner := *metav1.NewControllerRef(m, api.GroupVersion.WithKind("ManagedClusterMigration"))
		if err := c.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: shard.Name, OwnerReferences: []metav1.OwnerReference{owner}}, Data: shard.Data,
		}); err != nil {
			return err
		}
	}
	counts := state.Counts()
	completed := &metav1.Time{Time: now}
	if slices.ContainsFunc(state.Clusters, func(c hub.Cluster) bool { return !c.HasEnded() }) {
		completed = nil
	}
	summary := metav1.Condition{Type: api.ConditionReady, Status: metav1.ConditionTrue, Reason: api.ReasonSucceeded.Name, Message: "every cluster has moved", LastTransitionTime: metav1.Time{Time: now}}
	if counts.Moved < counts.Total {
		summary.Type, summary.Reason, summary.Message = api.ConditionStalled, api.ReasonPartiallyRegistered.Name, "some clusters are back"
	}
	m.Status = api.ManagedClusterMigrationStatus{
		Phase: state.Phase, Progress: state.Progress(len(shards)), Counts: &counts, StartTime: &metav1.Time{Time: now.Add(-time.Minute)}, CompletionTime: completed,
		Conditions: []metav1.Condition{summary},
	}
	return c.Status().Update(ctx, m)
}
