// Package property plays random interleavings of users, editors of a CRD, runs that are killed, an API server that lags behind, policies
// that come and go, and conversion webhooks that may lose a value, and reads from etcd that the contract of a migration holds: status.storedVersions never loses a version at which an object is
// stored, no value that a user wrote is lost, and no value that a storage version does not keep is dropped without consent.
//
// `make property FOR=30m` plays more of them, and `go test ./property -property.seed=N` plays one again.
//
// Read property_test.go, which has the play, then actors_test.go, converter_test.go and contract_test.go.
package property
