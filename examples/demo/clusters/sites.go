package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	hubresource "github.com/godwit-dev/godwit/cmd/hub/resource"
	"github.com/godwit-dev/godwit/examples/demo/stage"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
)

// siteObjects are the objects of a cluster on its hub, one of each form that a move handles: a Secret by name, a Secret by
// reference, a custom resource, and a custom resource with a status that must not get lost.
const siteObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: NAME}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: NAME, labels: {vendor: demo}}
spec: {hubAcceptsClient: true, leaseDurationSeconds: 60}
---
apiVersion: v1
kind: Secret
metadata: {name: NAME-admin-password, namespace: NAME}
stringData: {password: demo}
---
apiVersion: v1
kind: Secret
metadata: {name: bmc, namespace: NAME}
stringData: {username: demo, password: demo}
---
apiVersion: agent.open-cluster-management.io/v1
kind: KlusterletAddonConfig
metadata: {name: NAME, namespace: NAME}
spec: {clusterName: NAME, searchCollector: {enabled: true}}
---
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {name: node, namespace: NAME}
spec: {online: true, bmc: {address: "redfish://node", credentialsName: bmc}}
status: {provisioning: {state: provisioned, ID: node}, poweredOn: true, errorCount: 0}`

// objectsOfSite is the number of siteObjects that move. The target hub creates the namespace itself.
const objectsOfSite = 5

// addSite creates a cluster on the source hub, and runs it until the end of the demo.
func (d *demo) addSite(ctx context.Context, k *klusterlet.Klusterlet) error {
	k.Source = klusterlet.Importer{Client: d.hubs[sourceHub], Server: d.Contexts[sourceHub].Host, BootstrapNamespace: bootstrapNamespace}
	k.Target = klusterlet.Importer{Client: d.hubs[targetHub], Server: d.Contexts[targetHub].Host, BootstrapNamespace: bootstrapNamespace}
	for document := range strings.SplitSeq(strings.ReplaceAll(siteObjects, "NAME", k.Name), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			return fmt.Errorf("decode an object of %s: %w", k.Name, err)
		}
		status := o.Object["status"]
		if err := k.Source.Create(ctx, o); err != nil {
			return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if status == nil {
			continue
		}
		o.Object["status"] = status
		if err := k.Source.Status().Update(ctx, o); err != nil {
			return fmt.Errorf("write the status of %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	s := &site{Klusterlet: k}
	var err error
	if s.before, err = d.objectsOf(ctx, k.Name, sourceHub); err != nil {
		return err
	}
	d.sites = append(d.sites, s)
	d.run(ctx, "cluster "+k.Name, k.Run)
	return nil
}

// awaitSites waits until all clusters are registered at the source hub.
func (d *demo) awaitSites(ctx context.Context) error {
	return stage.Await(ctx, "registration of the clusters at "+sourceHub, func(ctx context.Context) (bool, error) {
		for _, s := range d.sites {
			mc := &clusterv1.ManagedCluster{}
			if err := d.hubs[sourceHub].Get(ctx, client.ObjectKey{Name: s.Name}, mc); err != nil {
				return false, err
			}
			if !meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ManagedClusterConditionAvailable) {
				return false, nil
			}
		}
		return true, nil
	})
}

// objectsOf reads the objects of a cluster on a hub that a migration would move: their spec, data and status, which a move
// must not change. It leaves out what OCM's agents write into a ManagedCluster.
func (d *demo) objectsOf(ctx context.Context, name, hub string) (map[string]string, error) {
	objects, err := cluster.Hub{Client: d.hubs[hub]}.Objects(ctx, name, hubresource.Rules())
	if err != nil {
		return nil, fmt.Errorf("read the objects of %s on %s: %w", name, hub, err)
	}
	found := map[string]string{}
	for _, o := range objects {
		content := map[string]any{"spec": o.Object["spec"], "data": o.Object["data"], "status": o.Object["status"]}
		if o.GetKind() == "ManagedCluster" {
			content = map[string]any{"labels": o.GetLabels()["vendor"]}
		}
		text, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		found[o.GetKind()+"/"+o.GetName()] = string(text)
	}
	return found, nil
}

// tally counts clusters and their objects on both hubs.
type tally struct {
	// moved and stayed count the clusters that only the target, or only the source, accepts.
	moved, stayed int
	// onTarget and onSource count the objects that are as before.
	onTarget, onSource int
	// left counts objects on the hub that does not accept their cluster.
	left int
}

// count counts the clusters of sites and their objects on both hubs.
func (d *demo) count(ctx context.Context, sites []*site) (t tally, err error) {
	for _, s := range sites {
		var accepts [2]bool
		var as, all [2]int
		for i, hub := range []string{sourceHub, targetHub} {
			mc := &clusterv1.ManagedCluster{}
			err := d.hubs[hub].Get(ctx, client.ObjectKey{Name: s.Name}, mc)
			if client.IgnoreNotFound(err) != nil {
				return t, fmt.Errorf("read ManagedCluster %s on %s: %w", s.Name, hub, err)
			}
			accepts[i] = mc.Spec.HubAcceptsClient
			now, err := d.objectsOf(ctx, s.Name, hub)
			if err != nil {
				return t, err
			}
			as[i], all[i] = stage.Same(s.before, now), len(now)
		}
		switch accepts {
		case [2]bool{true, false}:
			t.stayed++
			t.onSource += as[0]
			t.left += all[1]
		case [2]bool{false, true}:
			t.moved++
			t.onTarget += as[1]
			t.left += all[0]
		}
	}
	return t, nil
}

// claimTally claims that the first hub lost as many clusters as moved, and that all objects are as before.
func (d *demo) claimTally(ctx context.Context, sites []*site, moved int) error {
	t, err := d.count(ctx, sites)
	if err != nil {
		return err
	}
	stayed := len(sites) - moved
	for _, c := range []struct {
		what      string
		got, want int
	}{
		{"clusters that only " + targetHub + " accepts", t.moved, moved},
		{"objects of them on " + targetHub + ", as they were", t.onTarget, moved * objectsOfSite},
		{"clusters that only " + sourceHub + " accepts", t.stayed, stayed},
		{"objects of them on " + sourceHub + ", as they were", t.onSource, stayed * objectsOfSite},
		{"objects left on the other hub", t.left, 0},
	} {
		if c.want == 0 && c.got == 0 && c.what != "objects left on the other hub" {
			continue
		}
		if err := stage.Claim(d.Teller, c.what, c.got, c.want); err != nil {
			return err
		}
	}
	return nil
}
