// Package e2e tests the migration of managed clusters with the servers of other projects: Apache Kafka, and the registration
// controllers and agents of Open Cluster Management. `make e2e-hub` runs it.
package e2e
