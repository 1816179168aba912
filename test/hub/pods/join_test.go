//go:build linux

package pods_test

import (
	"testing"

	operatorv1 "open-cluster-management.io/api/operator/v1"
)

// TestJoin: a hub of pods becomes ready, and a cluster whose agents are pods joins it, and runs what a ManifestWork gives it.
func TestJoin(t *testing.T) {
	h := startHub(t, "hub")
	h.awaitHub(t)
	m := startMember(t, "member", operatorv1.InstallModeDefault, h)
	m.awaitJoined(t, h)
	m.runOwn(t)
	h.giveWork(t, m.name)
	m.workloads(t)
}
