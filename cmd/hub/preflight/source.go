package preflight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
	"github.com/godwit-dev/godwit/cmd/hub/source"
	"github.com/godwit-dev/godwit/cmd/hub/target"
	"github.com/godwit-dev/godwit/internal/apierror"
	"github.com/godwit-dev/godwit/internal/kube"
)

// sourceHub returns the hub for the checks of package source.
func (v *View) sourceHub(q Request) source.Hub {
	h := source.Hub{
		Hub: v.hub(), Returns: target.Returning(v.hub(), v.AgentNamespace, q.To), AgentNamespace: v.AgentNamespace, To: q.To,
		OnEvictedWorks: q.OnEvictedWorks, OnUserObjects: q.OnUserObjects,
	}
	if q.OnUserObjects == api.UserObjectsMove {
		h.Rules = resource.WithUserObjects(h.MigrationRules())
	}
	return h
}

// selectClusters resolves the placement, or returns the named clusters.
func (h Hubs) selectClusters(ctx context.Context, q Request, r *Report) (names []string, err error) {
	if q.Placement == "" {
		r.pass(CheckSelection)
		return q.Clusters, nil
	}
	if h.Source == nil {
		r.add(CheckSelection, NotChecked, ReasonHubNotChecked, fmt.Sprintf("Placement %s is on source hub %s, and the preflight has no access to it", q.Placement, q.From))
		return nil, nil
	}
	on, waits := h.Source.sourceHub(q), ""
	_, err = h.repeat(ctx, on.Hub, func(ctx context.Context) (_ cluster.Result, err error) {
		names, waits, err = on.ResolvePlacement(ctx, q.Placement)
		return cluster.Result{}, err
	})
	var final *cluster.Error
	switch {
	case errors.As(err, &final):
		r.add(CheckSelection, Blocked, final.Reason, final.Message)
	case err != nil:
		return nil, err
	case waits != "":
		r.add(CheckSelection, NotChecked, ReasonUndecided, waits+": run the command again")
	case len(names) == 0:
		r.add(CheckSelection, Blocked, api.ReasonClustersInvalid, fmt.Sprintf("Placement %s/%s selects no cluster: correct its predicates", h.Source.AgentNamespace, q.Placement))
	default:
		r.pass(CheckSelection)
	}
	return names, nil
}

// mergeCheck merges the result of a check of the migration. An error that a retry does not fix concerns the hub, and
// blocks every cluster.
func (r *Report) mergeCheck(check string, result cluster.Result, err error) error {
	var final *cluster.Error
	switch {
	case errors.As(err, &final):
		r.add(check, Blocked, final.Reason, final.Message)
		return nil
	case err != nil:
		return err
	}
	r.pass(check)
	return r.merge(result)
}

// merge merges the failures of clusters. It returns an error for a cluster that waits: it could not be read.
func (r *Report) merge(result cluster.Result) error {
	for _, name := range slices.Sorted(maps.Keys(result.Waiting)) {
		return fmt.Errorf("read cluster %s: %s", name, result.Waiting[name])
	}
	for name, failed := range result.Failed {
		c := r.cluster(name)
		c.Reasons = append(c.Reasons, finding(failed.Reason, failed.Message))
	}
	return nil
}

// checkSource runs the migration's checks of the clusters on the source hub, and reads what is at risk.
func (h Hubs) checkSource(ctx context.Context, q Request, r *Report) (sets map[string][]string, err error) {
	if h.Source == nil {
		r.add(CheckOnSource, NotChecked, ReasonHubNotChecked, fmt.Sprintf("the preflight has no access to source hub %s", q.From))
		return nil, nil
	}
	names := r.names()
	on := h.Source.sourceHub(q)
	imports, err := h.checkKlusterlets(ctx, q, r)
	if err != nil {
		return nil, err
	}
	if imports && h.checkUserObjects(ctx, q, r) {
		on.OnUserObjects = ""
	}
	warned := warnings{byName: map[string][]godwit.Finding{}}
	on.Warn = warned.set
	result, err := h.repeat(ctx, on.Hub, func(ctx context.Context) (cluster.Result, error) { return on.ValidateSource(ctx, names) })
	if err := r.mergeCheck(CheckOnSource, result, err); err != nil {
		return nil, err
	}
	all, read, err := h.observe(ctx, on, result.Done)
	if err == nil {
		err = r.merge(read)
	}
	sets = map[string][]string{}
	for _, name := range read.Done {
		c, o := r.cluster(name), all[name]
		c.AtRisk = append(append(c.AtRisk, o.risks(name)...), warned.byName[name]...)
		if o.clusterSet != "" {
			sets[o.clusterSet] = append(sets[o.clusterSet], name)
		}
	}
	return sets, err
}

// checkKlusterlets finds out how the hubs configure klusterlets: by the import controller, or by a ManifestWork of the migration. It adds a check
// unless the import controllers of both do.
func (h Hubs) checkKlusterlets(ctx context.Context, q Request, r *Report) (imports bool, err error) {
	other := false
	_, err = h.repeat(ctx, h.Source.hub(), func(context.Context) (cluster.Result, error) {
		var err error
		if imports, err = h.Source.hub().Imports(); err != nil || h.Target == nil {
			other = imports
			return cluster.Result{}, err
		}
		other, err = h.Target.hub().Imports()
		return cluster.Result{}, err
	})
	switch {
	case err != nil:
		return false, err
	case imports != other:
		with, without := q.From, q.To
		if other {
			with, without = q.To, q.From
		}
		r.add(CheckKlusterlets, Blocked, cluster.ReasonHubsDiffer, fmt.Sprintf("hub %s has the import controller, and hub %s has not: install it there", with, without))
	case !imports:
		r.add(CheckKlusterlets, NotChecked, ReasonKlusterletNotChecked, fmt.Sprintf(
			"source hub %s has no KlusterletConfig: ManifestWork %s in the namespace of each cluster gives its Klusterlet the kubeconfigs of both hubs. Its agents start again at the beginning and at the end of the migration, and workloads do not",
			q.From, klusterlet.WorkName))
	}
	return imports, nil
}

// checkUserObjects reports whether the user may not list what no rule may move. If the user has chosen to move or keep it, that need not be known.
func (h Hubs) checkUserObjects(ctx context.Context, q Request, r *Report) (skip bool) {
	if q.OnUserObjects != api.UserObjectsRefuse && q.OnUserObjects != api.UserObjectsAccept {
		return false
	}
	for _, resource := range []string{"secrets", "configmaps"} {
		review := kube.ReviewOf(apierror.Permission{Verb: "list", Resource: resource})
		if h.Source.Client.Create(ctx, review) == nil && !review.Status.Allowed {
			r.add(CheckUserObjects, NotChecked, ReasonUserObjectsNotChecked, fmt.Sprintf(
				"you may not list %s on source hub %s: Secrets and ConfigMaps that no rule moves are not known, and the import controller deletes them with the namespaces of the clusters", resource, q.From))
			return true
		}
	}
	return false
}

// warnings are those of the migration's checks, by cluster.
type warnings struct {
	mutex  sync.Mutex
	byName map[string][]godwit.Finding
}

func (w *warnings) set(name string, found []godwit.Finding) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.byName[name] = found
}

// observe reads the facts of clusters that the checks of the migration do not read.
func (h Hubs) observe(ctx context.Context, on source.Hub, names []string) (map[string]clusterFacts, cluster.Result, error) {
	var mutex sync.Mutex
	all := map[string]clusterFacts{}
	read, err := h.repeat(ctx, on.Hub, func(ctx context.Context) (cluster.Result, error) {
		on.Hub = on.Pass().WithBatchReads(names)
		return on.Each(ctx, names, func(ctx context.Context, name string) (string, error) {
			o, err := h.Source.observe(ctx, on, name)
			mutex.Lock()
			defer mutex.Unlock()
			all[name] = o
			return "", err
		})
	})
	return all, read, err
}

func (v *View) observe(ctx context.Context, on source.Hub, name string) (o clusterFacts, err error) {
	mc := &clusterv1.ManagedCluster{}
	if err := v.Client.Get(ctx, client.ObjectKey{Name: name}, mc); err != nil {
		return o, err
	}
	o.clusterSet, o.lease = mc.Labels[clusterSetLabel], time.Duration(mc.Spec.LeaseDurationSeconds)*time.Second
	if o.evicted, o.unmoved, err = on.AcceptedLosses(ctx, name); err != nil {
		return o, err
	}
	addOns, err := on.AddOns(ctx, name)
	if err != nil {
		return o, err
	}
	for i := range addOns {
		o.addOns = append(o.addOns, addOns[i].Name)
	}
	lease := &coordinationv1.Lease{}
	err = v.Client.Get(ctx, client.ObjectKey{Namespace: name, Name: cluster.LeaseName}, lease)
	if err == nil && lease.Spec.RenewTime != nil {
		o.skew = -v.Clock.Since(lease.Spec.RenewTime.Time)
	}
	if apierrors.IsNotFound(err) {
		err = nil // an agent without a lease is not Available
	}
	return o, err
}
