// Package embed holds no code, only the proof that whoever runs a controller-runtime operator may embed Godwit for one
// line of go.mod: no other module is added and no version is raised.
//
// testdata/operator is an operator on the libraries of Godwit's floor, testdata/godwit what its author adds.
package embed
