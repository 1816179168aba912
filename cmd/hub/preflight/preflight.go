package preflight

import (
	"context"
	"slices"
)

// Run checks the hubs and reports. An error means that a request failed, so that there is no report.
func (h Hubs) Run(ctx context.Context, q Request) (Report, error) {
	r := Report{From: q.From, To: q.To}
	if err := h.checkHubs(ctx, q, &r); err != nil {
		return r, err
	}
	names, err := h.selectClusters(ctx, q, &r)
	if err != nil {
		return r, err
	}
	names = slices.Clone(names)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		r.Clusters = append(r.Clusters, Cluster{Name: name})
	}
	if err := h.checkOverlap(ctx, q, &r); err != nil {
		return r, err
	}
	sets, err := h.checkSource(ctx, q, &r)
	if err != nil {
		return r, err
	}
	if err := h.checkTarget(ctx, q, sets, &r); err != nil {
		return r, err
	}
	h.checkClocks(q, &r)
	r.decide()
	return r, nil
}
