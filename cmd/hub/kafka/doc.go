// Package kafka sends and receives envelopes over Kafka. It decides nothing about their content.
//
// A message is written by an idempotent producer and acknowledged by all replicas in sync. Messages of one migration
// have one key, and stay in order. An offset is committed after the handler has stored the message, so the broker
// delivers the message again after a crash; a handler must accept repeated messages. A topic must not be compacted: a
// later batch of a migration would delete an earlier one.
package kafka
