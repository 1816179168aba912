// Package clusterrejoin is `godwit cluster move` for a cluster whose hub is lost, by the context of the cluster: the plan, the question, the
// progress and the result of package rejoin.
package clusterrejoin
