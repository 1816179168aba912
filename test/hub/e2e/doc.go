// Package e2e tests the migration of managed clusters with the servers of others: Apache Kafka. `make e2e-hub` runs it.
package e2e
