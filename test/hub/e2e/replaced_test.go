package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/identity"
	hubkafka "github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/test/howto"
	"github.com/godwit-dev/godwit/test/hub/ocm"
	"github.com/godwit-dev/godwit/test/process"
)

// deployment is a Deployment that the harness plays: a process restarts with each change of it, and is stopped without replicas.
type deployment struct {
	hub             *ocm.Hub
	namespace, name string
	daemon          *daemon
	generation      int64
}

// deployments are those of the installation, by the names that the chart gives them.
func (in *installation) deployments(t *testing.T) []*deployment {
	t.Helper()
	all := []*deployment{
		{hub: in.hub1, namespace: managerNamespace, name: "godwit-cluster-migration", daemon: in.manager},
		{hub: in.hub1, namespace: agentNamespace, name: "godwit-hub-agent", daemon: in.source},
		{hub: in.hub2, namespace: agentNamespace, name: "godwit-hub-agent", daemon: in.target},
	}
	for _, d := range all {
		labels := map[string]string{"app": d.name}
		o := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: d.name},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "godwit", Image: "godwit"}}}},
			},
		}
		if err := d.hub.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.hub.Client.Delete(context.WithoutCancel(t.Context()), o) })
		d.generation = o.Generation
	}
	return all
}

// play follows a change of a Deployment.
func (d *deployment) play(ctx context.Context) error {
	o := &appsv1.Deployment{}
	if err := d.hub.Client.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: d.name}, o); err != nil || o.Generation == d.generation {
		return err
	}
	d.generation = o.Generation
	if err := d.daemon.stop(); err != nil {
		return err
	}
	d.daemon.process = nil
	if *o.Spec.Replicas == 0 {
		return nil
	}
	return d.daemon.start()
}

// setManagerKey is what helm upgrade does with hubAgent.managerKey.
func (in *installation) setManagerKey(ctx context.Context) error {
	key, err := publicKey(ctx, in.hub1, managerNamespace)
	if err != nil {
		return err
	}
	for _, d := range []*daemon{in.source, in.target} {
		for i, arg := range d.args {
			if strings.HasPrefix(arg, "--manager-key=") {
				d.args[i] = "--manager-key=" + key
			}
		}
		if err := d.stop(); err != nil {
			return err
		}
		if err := d.start(); err != nil {
			return err
		}
	}
	return nil
}

// identityOf reads the identity in a namespace, as a backup has it.
func identityOf(t *testing.T, h *ocm.Hub, namespace string) message.Identity {
	t.Helper()
	secret := &corev1.Secret{}
	if err := h.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: identity.Secret}, secret); err != nil {
		t.Fatal(err)
	}
	own, err := message.ReadIdentity(secret.Data[identity.Private])
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// TestReplacedKeys runs each command of docs/guides/replace-keys-of-hubs.md, after a thief has copied the keys of the manager and of an agent.
// Clusters then move with the new keys, and those of the thief are refused. The harness plays the Deployments.
//
// Matrix: H117.
func TestReplacedKeys(t *testing.T) {
	in := install(t)
	manager, agent := identityOf(t, in.hub1, managerNamespace), identityOf(t, in.hub2, agentNamespace)
	all := in.deployments(t)
	playing, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for playing.Err() == nil {
			for _, d := range all {
				if err := d.play(playing); err != nil && playing.Err() == nil {
					ended <- fmt.Errorf("play Deployment %s: %w", d.name, err)
					return
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		ended <- nil
	}()
	dir := t.TempDir()
	contexts, err := in.writeContexts(dir)
	if err != nil {
		t.Fatal(err)
	}
	commands, err := howto.Run(t.Context(), howto.Guide{
		File: filepath.Join("..", "..", "..", "docs", "guides", "replace-keys-of-hubs.md"), Dir: dir,
		Env:          append(os.Environ(), "KUBECONFIG="+contexts, "HOME="+t.TempDir(), "PATH="+in.folder+":"+kubectlFolder(t)+":"+os.Getenv("PATH")),
		Placeholders: map[string]string{"GLOBAL": "global", "HUB": in.hub2.Name},
		Written:      func(string) error { return in.setManagerKey(t.Context()) },
	})
	stop()
	if failed := <-ended; failed != nil {
		t.Fatal(failed)
	}
	if err != nil || commands < 11 {
		t.Fatalf("%d commands ran: %v", commands, err)
	}

	command := message.SourceBundle{Command: hub.Command{Stage: api.PhaseCleaning, Attempt: 100, Orders: []hub.Order{{Action: hub.DeleteMoved, Clusters: []string{"replaced-1"}}}}, ToHub: in.hub2.Name}
	in.mustRefuse(t, in.source, manager, message.Header{
		Type: message.TypeSource, Migration: "of-the-thief", From: message.ManagerName, To: in.hub1.Name, Stage: command.Command.Stage, Attempt: command.Command.Attempt, ValidFor: time.Minute,
	}, command)
	in.mustRefuse(t, in.manager, agent, message.Header{
		Type: message.TypeHeartbeat, From: in.hub2.Name, To: message.ManagerName, ValidFor: time.Minute,
	}, message.Heartbeat{Hub: in.hub2.Name, Versions: []int{message.Version}})

	clusters := importSites(t, in.fleet, "replaced-1")
	before := onHub(t, in.hub1, clusters[0].Name)
	in.migrate(t, "replaced", nil, clusters[0].Name).mustReach(api.PhaseCompleted)
	mustHaveMoved(t, in.fleet, before, clusters[0])
}

// mustRefuse fails the test unless a process refuses what a thief has signed.
func (in *installation) mustRefuse(t *testing.T, by *daemon, key message.Identity, h message.Header, bundle any) {
	t.Helper()
	topic := message.SpecTopic(h.To)
	if h.To == message.ManagerName {
		topic = message.StatusTopic(h.From)
	}
	known := countForged(t, by)
	data, err := message.Encode(bundle)
	if err != nil {
		t.Fatal(err)
	}
	e, err := message.Write(h, data, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := hubkafka.New(hubkafka.Options{Brokers: []string{in.broker.Address()}, ClientID: "thief"})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	if err := transport.EnsureTopics(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	if err := transport.Send(t.Context(), topic, h.Migration, e); err != nil {
		t.Fatal(err)
	}
	await(t, "the refusal of "+topic, func(context.Context) error {
		if countForged(t, by) > known {
			return nil
		}
		return fmt.Errorf("%s has refused no more than %d messages%s", by.name, known, process.Tail(by.log))
	})
}

// countForged counts the refusals in the log of a process.
func countForged(t *testing.T, d *daemon) int {
	t.Helper()
	text, err := os.ReadFile(d.log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "Forged")
}
