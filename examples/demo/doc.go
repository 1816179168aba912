// Command demo shows a migration from the first plan to the proof in etcd, on a local control
// plane and with the released CRDs of the Gateway API. An argument chooses another story: of
// ControllerRevisions, of external names, or of managed clusters.
//
// It runs the godwit program as a user would type it, and checks each claim by other means: in
// etcd, or with a request to the API server. A claim that does not hold ends the demo with an
// error. It reads no kubeconfig, and removes everything at its end.
//
// All stories use package stage. Each story has a package: objects, revisions, names and clusters.
package main
