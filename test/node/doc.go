// Package node runs a real cluster on the machine of a test: the control plane of package controlplane with all controllers of
// kube-controller-manager, kube-scheduler, kube-proxy, and nodes, each with containerd and a kubelet. Pods run in it as they run anywhere:
// their images are unpacked, they get tokens and addresses, reach Services, are probed, evicted and killed.
//
// The tests run by package machine: everything is in namespaces of their own, and ends with them. All nodes of a cluster share a network:
// that of the machine, or one of their own where a machine has several clusters. The API servers are in the network of the machine. It
// has no DNS, since what is tested does not need names of Services, and no network policy is enforced: a test sees that the API server
// has it. Images come from layouts in folders, since there is no registry.
//
// It needs what `make node` provides.
//
// provided.go has the programs and images that are there before a test, network.go the networks of clusters, cluster.go and node.go start
// and stop a cluster and its nodes, and wait.go waits for pods.
package node
