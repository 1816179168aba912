// Command hub measures how long managed clusters take to move from one hub to another.
//
// The control planes of both hubs, their registration controllers, Apache Kafka, the manager and the agents are real, each
// a process of its own. Klusterlets and import controllers are simulated, so that the memory of real ones does not limit the
// number of clusters: each klusterlet requests a certificate, renews its lease, and changes hubs as its bootstrap kubeconfigs and
// the hubs decide.
//
// The floor is a bare switch of as many other clusters, in the same run. They know both hubs by a KlusterletConfig. The target accepts
// all of them, the source releases them, and a cluster has switched when it has renewed its lease at the target twice. No resource
// moves, and no step validates or cleans anything. A second floor is the removal: the time that the source needs to delete their
// ManagedClusters. Compare only ratios within one run of this command.
//
// # Reading order
//
// hub.go has the two hubs, and fleet.go all clusters. installation.go starts Godwit, and counts the requests of its processes to the
// API servers. floor.go and move.go are the measurements, and main.go has the result. A file uses only files before it.
package main
