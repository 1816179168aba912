// Package kafka starts Apache Kafka for tests and benchmarks: one broker in KRaft mode on the loopback address, with its
// data in a folder of its own. It ends with the test, and may be killed and started again on its data.
//
// The broker needs the jars that `make kafka` installs into bin/kafka, and Java 17 or later. If one of them is missing, Start
// returns [ErrMissing]: a test then skips itself with a message, unless [Required].
//
// Read broker.go, then install.go.
package kafka
