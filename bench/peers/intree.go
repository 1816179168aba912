package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/process"
)

// inTree is the storage version migrator of kube-controller-manager.
type inTree struct {
	binary, kubeconfig, dir string
	clients                 dynamic.Interface
}

var inTreeMigrations = schema.GroupVersionResource{Group: "storagemigration.k8s.io", Version: "v1", Resource: "storageversionmigrations"}

// collectorSynced is the line that the garbage collector logs when its cache has every resource, which the migrator waits for.
const collectorSynced = "all resource monitors have synced"

func (i inTree) name() string { return "intree" }

func (i inTree) prepare(ctx context.Context, r *widget.Resource) (migration, error) {
	port, err := controlplane.FreePort()
	if err != nil {
		return nil, err
	}
	child, err := run(i.dir, i.name(), exec.Command(i.binary, "--kubeconfig="+i.kubeconfig, "--leader-elect=false",
		"--controllers=storage-version-migrator-controller,garbage-collector-controller",
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port), "--cert-dir="+filepath.Join(i.dir, "kube-controller-manager")))
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
		// The controller that trims is another one.
		finished: func(ctx context.Context) error {
			return await(ctx, i.clients.Resource(inTreeMigrations), r.CRD(), func(o *unstructured.Unstructured) bool { return !conditionTrue(o, "Running") })
		},
	}
	err = child.during(ctx, func(ctx context.Context) error {
		return process.Poll(ctx, "the garbage collector's cache", func(context.Context) error {
			log, err := os.ReadFile(child.log)
			if err == nil && !strings.Contains(strings.ToLower(string(log)), collectorSynced) {
				err = fmt.Errorf("%s does not say that it has synced", child.log)
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
