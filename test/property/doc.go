// Package property plays random interleavings of users, editors of a CRD who may also delete it and create it again, runs that are killed,
// an API server that lags behind, policies that come and go, and conversion webhooks that may lose a value. It reads from etcd that the
// contract of a migration holds:
//
//   - status.storedVersions never loses a version at which an object is stored;
//   - no value that a user wrote is lost, and no value that a storage version does not keep is dropped without consent. One case is
//     counted and allowed: v2 becomes the storage version while a run writes an object at v1, see overtaken;
//   - a run acts only on the CRD that it was planned for, and not on one that was created again under its name. The objects of the old
//     CRD are deleted with it, and users get errors meanwhile: what they wrote to the new CRD is not lost;
//   - a run that has begun with a storage version writes no object before the settle time is over.
//
// `make property FOR=30m` plays more of them, and `go test ./property -property.seed=N` plays one again. Most plays have a short settle
// time. Every 60th seed has the default one, 75 s, with API servers' leases, as a user who sets no option gets it, and takes five
// minutes: `make test` begins with seed 1 and ends before, and `make property` plays two or three in half an hour.
//
// Read property_test.go, which has the play, then actors_test.go, recreation_test.go, converter_test.go, run_test.go and contract_test.go.
package property
