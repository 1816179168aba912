// Package embed has tests only. They prove that embedding Godwit in a controller-runtime operator adds one line to its
// go.mod: it adds no other module and raises no version. An operator that embeds Cluster API's crdmigrator also changes one
// import. With the libraries of Cluster API v1.14 that is all. The libraries of v1.13 are older than the oldest ones that Godwit
// supports, its floor: the operator raises them to the floor.
//
// testdata/operator is an operator on the libraries of Godwit's floor, testdata/godwit the file that embeds Godwit;
// testdata/clusterapi is a provider of Cluster API, and testdata/clusterapi-* are its requirements by release.
package embed
