package preflight

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
	"github.com/godwit-dev/godwit/cmd/hub/target"
)

var clusterSetKind = schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1beta2", Kind: "ManagedClusterSet"}

// checkTarget runs the migration's checks of the clusters on the target hub. sets has the clusters of each
// ManagedClusterSet on the source hub.
func (h Hubs) checkTarget(ctx context.Context, q Request, sets map[string][]string, r *Report) error {
	if h.Target == nil {
		r.add(CheckOnTarget, NotChecked, ReasonHubNotChecked, fmt.Sprintf("the preflight has no access to target hub %s", q.To))
		return nil
	}
	on := target.Hub{Hub: h.Target.hub()}
	if h.Source != nil {
		if _, err := h.repeat(ctx, h.Source.hub(), func(ctx context.Context) (_ cluster.Result, err error) {
			on.Identities, err = h.Source.hub().IdentitiesOf(ctx, r.names())
			return cluster.Result{}, err
		}); err != nil {
			return err
		}
	}
	result, err := h.repeat(ctx, on.Hub, func(ctx context.Context) (cluster.Result, error) { return on.ValidateTarget(ctx, r.names()) })
	if err := r.mergeCheck(CheckOnTarget, result, err); err != nil {
		return err
	}
	if h.Source != nil {
		if err := h.checkKinds(ctx, q, r); err != nil {
			return err
		}
	}
	return h.checkSets(ctx, sets, r)
}

// checkKinds looks for objects to move whose kind the target hub does not serve.
func (h Hubs) checkKinds(ctx context.Context, q Request, r *Report) error {
	for _, kind := range movedKinds() {
		mapping, err := h.Source.Client.RESTMapper().RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return err
		}
		if _, err := h.Target.Client.RESTMapper().RESTMapping(kind, mapping.GroupVersionKind.Version); err == nil {
			continue
		} else if !meta.IsNoMatchError(err) {
			return err
		}
		counts, err := h.count(ctx, mapping.GroupVersionKind)
		if err != nil {
			return err
		}
		for i := range r.Clusters {
			c := &r.Clusters[i]
			if n := counts[c.Name]; n > 0 {
				c.Reasons = append(c.Reasons, finding(cluster.ReasonKindNotServed, fmt.Sprintf(
					"%s has %d objects of kind %s, and target hub %s does not serve %s: install its CRD there",
					c.Name, n, kind.Kind, q.To, mapping.GroupVersionKind.GroupVersion())))
			}
		}
	}
	return nil
}

// movedKinds returns the custom resource kinds of the rules.
func movedKinds() []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, rule := range resource.Rules() {
		kind := schema.GroupKind{Group: rule.Group, Kind: rule.Kind}
		if rule.Group != "" && !rule.ClusterScoped && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// pageSize bounds memory; 500 is kubectl's --chunk-size default.
const pageSize = 500

// count counts the objects of a kind on the source hub by namespace: each cluster has a namespace of its name.
func (h Hubs) count(ctx context.Context, kind schema.GroupVersionKind) (map[string]int, error) {
	counts := map[string]int{}
	for next := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(kind)
		if err := h.Source.Client.List(ctx, page, client.Limit(pageSize), client.Continue(next)); err != nil {
			return nil, err
		}
		for i := range page.Items {
			counts[page.Items[i].Namespace]++
		}
		if next = page.Continue; next == "" {
			return counts, nil
		}
	}
}

// checkSets looks for the ManagedClusterSets of the clusters.
func (h Hubs) checkSets(ctx context.Context, sets map[string][]string, r *Report) error {
	for _, set := range slices.Sorted(maps.Keys(sets)) {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(clusterSetKind)
		err := h.Target.Client.Get(ctx, client.ObjectKey{Name: set}, o)
		switch {
		case err == nil:
			continue
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			return err
		}
		for _, name := range sets[set] {
			c := r.cluster(name)
			c.AtRisk = append(c.AtRisk, finding(ReasonClusterSet, fmt.Sprintf(
				"the target hub has no ManagedClusterSet %s, to which %s belongs: no Placement and no user of the set finds the cluster there; create it", set, name)))
		}
	}
	return nil
}

// checkClocks compares the clocks of the hubs with the one of this machine, and so with each other.
func (h Hubs) checkClocks(q Request, r *Report) {
	if h.Source == nil || h.Target == nil {
		r.add(CheckClocks, NotChecked, ReasonHubNotChecked, "the clocks of the hubs are compared only with access to both")
		return
	}
	skew := h.Source.Clock.Now().Sub(h.Target.Clock.Now())
	if skew.Abs() <= maxSkew {
		r.pass(CheckClocks)
		return
	}
	order := []string{q.From, q.To}
	if skew < 0 {
		slices.Reverse(order)
	}
	r.add(CheckClocks, AtRisk, ReasonClock, fmt.Sprintf("the clock of hub %s is %s ahead of that of hub %s: tokens and certificates of one may not be valid yet, or no more, for the other; correct it",
		order[0], skew.Abs().Round(time.Second), strings.Join(order[1:], "")))
}
