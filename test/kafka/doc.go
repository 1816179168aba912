// Package kafka starts Apache Kafka for tests and benchmarks: one broker in KRaft mode on the loopback address, with its
// data in a folder of its own. It ends with the test, and may be killed and started again on its data.
//
// The jars are those that `make kafka` has installed into bin/kafka, and they need Java 17 or later. Where one of the two
// is missing, Start returns [ErrMissing]: a test is then skipped, and says so, unless [Required].
//
// Read broker.go, then install.go.
package kafka
