package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/godwit-dev/godwit/bench/internal/frame"
	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/process"
	"github.com/godwit-dev/godwit/walk"
)

// ordered is a migration that an object of kind StorageVersionMigration starts: the API server's own kind, or the kind of
// kube-storage-version-migrator.
type ordered struct {
	child   *child
	objects dynamic.ResourceInterface
	order   *unstructured.Unstructured
	// started runs after the order was created; it may be nil.
	started func(context.Context) error
	// finished waits for what the migrator does after it has set the condition; it may be nil.
	finished func(context.Context) error
}

// begin creates the order. After a crash, the order exists already.
func (m *ordered) begin(ctx context.Context) error {
	if _, err := m.objects.Create(ctx, m.order, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if m.started == nil {
		return nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, faultLimit, errLimit)
	defer cancel()
	return m.started(limited)
}

func (m *ordered) wait(ctx context.Context) (string, error) {
	claim := "Running"
	err := m.child.During(ctx, func(ctx context.Context) error {
		return await(ctx, m.objects, m.order.GetName(), func(o *unstructured.Unstructured) bool {
			for _, condition := range []string{"Succeeded", "Failed"} {
				if conditionTrue(o, condition) {
					claim = condition
					return true
				}
			}
			return false
		})
	})
	if err != nil || m.finished == nil {
		return claim, err
	}
	return claim, m.child.During(ctx, m.finished)
}

func conditionTrue(o *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, is := c.(map[string]any); is && c["type"] == kind && c["status"] == "True" {
			return true
		}
	}
	return false
}

func (m *ordered) kill() error { return m.child.Crash() }

func (m *ordered) close(ctx context.Context) error {
	err := m.child.end()
	deleted := m.objects.Delete(ctx, m.order.GetName(), metav1.DeleteOptions{})
	if apierrors.IsNotFound(deleted) {
		deleted = nil
	}
	if deleted != nil {
		deleted = fmt.Errorf("delete migration %s: %w", m.order.GetName(), deleted)
	}
	return errors.Join(err, deleted)
}

// newOrder returns the order for a resource, with the fields that both kinds have.
func newOrder(apiVersion, name string, resource map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": "StorageVersionMigration",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"resource": resource},
	}}
}

// inTree is the storage version migrator of kube-controller-manager.
type inTree struct {
	env
	binary string
}

var inTreeMigrations = schema.GroupVersionResource{Group: "storagemigration.k8s.io", Version: "v1", Resource: "storageversionmigrations"}

// collectorSynced is the line that the garbage collector logs when its cache has every resource. The migrator waits for that.
const collectorSynced = "all resource monitors have synced"

func (i inTree) name() string { return "intree" }

func (i inTree) prepare(ctx context.Context, r *widget.Resource) (migration, error) {
	port, err := controlplane.FreePort()
	if err != nil {
		return nil, err
	}
	child, err := start(i.frame, i.name(), exec.Command(i.binary, "--kubeconfig="+i.cluster.Kubeconfig, "--leader-elect=false",
		"--controllers=storage-version-migrator-controller,garbage-collector-controller",
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port), "--cert-dir="+filepath.Join(i.frame.Dir, "kube-controller-manager")))
	if err != nil {
		return nil, err
	}
	m := &ordered{
		child: child, objects: i.clients.Resource(inTreeMigrations),
		order: newOrder("storagemigration.k8s.io/v1", r.CRD(), map[string]any{"group": r.Group(), "resource": widget.Plural}),
		// The migrator begins when the garbage collector's cache is newer than the order. Without a write to the resource, that
		// takes up to a minute.
		started: func(ctx context.Context) error {
			if err := await(ctx, i.clients.Resource(inTreeMigrations), r.CRD(), func(o *unstructured.Unstructured) bool {
				version, _, _ := unstructured.NestedString(o.Object, "status", "resourceVersion")
				return version != ""
			}); err != nil {
				return err
			}
			return r.Touch(ctx)
		},
		// Another controller trims status.storedVersions.
		finished: func(ctx context.Context) error {
			return await(ctx, i.clients.Resource(inTreeMigrations), r.CRD(), func(o *unstructured.Unstructured) bool { return !conditionTrue(o, "Running") })
		},
	}
	err = child.During(ctx, func(ctx context.Context) error {
		return process.Poll(ctx, "the garbage collector's cache", func(context.Context) error {
			log, err := os.ReadFile(child.Log)
			if err == nil && !strings.Contains(strings.ToLower(string(log)), collectorSynced) {
				err = fmt.Errorf("%s has no line that it has synced", child.Log)
			}
			return err
		})
	})
	if err != nil {
		_ = child.end()
		return nil, err
	}
	return m, nil
}

// ksvm is kube-storage-version-migrator.
type ksvm struct {
	env
	binary string
}

var ksvmMigrations = schema.GroupVersionResource{Group: "migration.k8s.io", Version: "v1alpha1", Resource: "storageversionmigrations"}

func (k ksvm) name() string { return "ksvm" }

// ksvmStart is the time that the migrator has to fill its cache of migrations, before the time of the turn begins.
const ksvmStart = 2 * time.Second

func (k ksvm) prepare(ctx context.Context, r *widget.Resource) (migration, error) {
	child, err := start(k.frame, k.name(), exec.Command(k.binary, "--kubeconfig="+k.cluster.Kubeconfig))
	if err != nil {
		return nil, err
	}
	if err := child.During(ctx, func(ctx context.Context) error { return walk.Wait(ctx, ksvmStart) }); err != nil {
		return nil, errors.Join(err, child.end())
	}
	// The order names the preferred version of the API server, as the project's trigger does.
	return &ordered{
		child: child, objects: k.clients.Resource(ksvmMigrations),
		order: newOrder("migration.k8s.io/v1alpha1", r.CRD(), map[string]any{"group": r.Group(), "version": "v2", "resource": widget.Plural}),
	}, nil
}

// installKSVM installs the CRDs of the release that the binary is built from.
func installKSVM(ctx context.Context, cluster *frame.Cluster) error {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kube-storage-version-migrator")
	list.Dir = filepath.Join(peerModules, "ksvm")
	list.Env = append(os.Environ(), "GOWORK=off")
	folder, err := list.Output()
	if err != nil {
		return fmt.Errorf("find kube-storage-version-migrator: %w", err)
	}
	crds, err := controlplane.ReadCRDs(filepath.Join(strings.TrimSpace(string(folder)), "manifests", "storage_*_crd.yaml"))
	if err != nil {
		return err
	}
	return controlplane.InstallCRDs(ctx, cluster.Config(), crds...)
}
