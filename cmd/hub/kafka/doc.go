// Package kafka carries envelopes over Kafka. It decides nothing about their content.
//
// A message is written by an idempotent producer and acknowledged by all replicas in sync.
// Messages of one migration have one key, and stay in order. An offset is committed after
// the handler has stored what the message says, so that a crash delivers it again; a
// handler must know repeated messages. A topic must not be compacted: the later batch of a
// migration would delete the earlier one.
package kafka
