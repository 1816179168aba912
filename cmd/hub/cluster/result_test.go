package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// TestProgress: during a pass over many clusters, each that is done is told once, with what the action did not find.
func TestProgress(t *testing.T) {
	var told []string
	gone := map[string]string{}
	h := cluster.Hub{Progress: func(done []string, notFound map[string]string) {
		told = append(told, done...)
		maps.Copy(gone, notFound)
	}}
	r, err := h.Each(t.Context(), names(100), func(_ context.Context, name string) (string, error) {
		switch name {
		case "cluster-001":
			return "", &cluster.GoneError{Message: "gone"}
		case "cluster-002":
			return "something", nil
		}
		return "", nil
	})
	if err != nil || len(r.Done) != 99 || r.Waiting["cluster-002"] == "" {
		t.Fatalf("done %d, waiting %v, %v", len(r.Done), r.Waiting, err)
	}
	slices.Sort(told)
	if len(told) != 96 || len(slices.Compact(told)) != 96 || slices.Contains(told, "cluster-002") {
		t.Errorf("told are %d clusters: %v; want three times 32", len(told), told)
	}
	if slices.Contains(told, "cluster-001") != (gone["cluster-001"] != "") {
		t.Errorf("gone are %s", fmt.Sprint(gone))
	}
}
