// Package pods moves clusters between hubs of Open Cluster Management of which no part is simulated. The hubs and the clusters are real
// clusters with a node, in which everything of Open Cluster Management runs as pods: its charts install the operators, which install the
// controllers of a hub and the agents of a cluster. `godwit cluster move` moves the clusters. `make e2e-hub-pods` runs it.
//
// Read main_test.go for the programs, site_test.go for a cluster with a node, hub_test.go and member_test.go for what is installed on it,
// workload_test.go for what must not change, join_test.go for the shortest test, and then move_test.go.
package pods
