// Command hub measures how long managed clusters take to move from one hub to another.
//
// The control planes of both hubs, their registration controllers, Apache Kafka, the manager and the agents are real, each
// a process of its own. Klusterlets are played: each requests a certificate, renews its lease, and changes hubs as its
// bootstrap kubeconfigs and the hubs say. The import controllers are played too. So the memory of a real klusterlet does not
// limit the number of clusters.
//
// The floor is a bare switch of as many other clusters, in the same run: the target accepts all of them, the source releases
// them, and each has registered at the target when it has renewed its lease there twice. No resource moves, nothing is
// validated, and nothing is cleaned. A second floor is the removal: how long the source needs when their ManagedClusters are
// deleted. Compare only ratios within one run of this command.
//
// # Reading order
//
// hub.go has the two hubs, klusterlet.go what is played for a cluster, and fleet.go all clusters. installation.go
// starts Godwit, and requests.go counts what its processes ask of the API servers. floor.go and move.go are the
// measurements, and main.go has the result. A file uses only files before it.
package main
