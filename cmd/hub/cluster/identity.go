package cluster

import (
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// ClaimID is the claim that identifies a cluster, whatever its name is and at whichever hub it is.
const ClaimID = "id.k8s.io"

// IdentityOf returns the claim [ClaimID] of a cluster; empty if its agent has reported none.
func IdentityOf(mc *clusterv1.ManagedCluster) string {
	for _, claim := range mc.Status.ClusterClaims {
		if claim.Name == ClaimID {
			return claim.Value
		}
	}
	return ""
}
