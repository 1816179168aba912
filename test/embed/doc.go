// Package embed holds no code, only the proof that whoever runs a controller-runtime operator may embed Godwit for one
// line of go.mod: no other module is added and no version is raised. Who embeds Cluster API's crdmigrator changes one
// import besides. On the libraries of Cluster API v1.14 that is all; on those of v1.13, which are older than Godwit's
// floor, libraries are raised to the floor and no further.
//
// testdata/operator is an operator on the libraries of Godwit's floor, testdata/godwit what its author adds;
// testdata/clusterapi is a provider of Cluster API, and testdata/clusterapi-* are the requirements that it may have.
package embed
