// Package embed holds no code, only the proof that whoever runs a controller-runtime operator may embed Godwit for one
// line of go.mod: no other module is added and no version is raised. Who embeds Cluster API's crdmigrator, on the
// libraries of Cluster API v1.14, changes one import besides, and nothing else.
//
// testdata/operator is an operator on the libraries of Godwit's floor, testdata/godwit what its author adds;
// testdata/clusterapi is a provider of Cluster API.
package embed
