// Package hub is the protocol that moves managed clusters from one hub to another, and back. It is pure: it reads no
// clock, sends no message and calls no API server.
//
// A migration has three parties: the manager on the global hub, an agent on the source hub and one on the target hub.
// The manager keeps a [State]. [Step] computes the next state from a state and an [Event]. [Due] returns the effects of
// a state, and [Deadline] when time alone changes the state. All three are total: an event that is late, repeated or
// unknown leaves the state unchanged. Effects are computed from the state and never stored beside it, so a crash loses
// none. The manager writes a state with [State.Shards] and then [State.Progress], which is the commit; then it executes
// the effects and acknowledges the event.
//
// A turn is a set of tasks of parties; the tables in turns.go are the protocol. In the first phases all clusters take each
// turn together. From phase Registering on, each cluster takes the turns of its way by itself: it moves or returns, and
// waits for no other cluster. A command has the orders of all clusters that take a turn of the party. What is gone is done,
// and a user can end the migration without a cluster. A rollback has the order that real agents need: the source accepts, the target stops accepting, the bootstrap
// configuration is reverted, the source sees fresh leases, and only then the target deletes. In every case, when no
// effect is due and no deadline is left, the phase is Completed or Failed, and exactly one hub accepts each cluster that no
// user has deleted or forgotten. A test checks this for all small migrations.
//
// An agent passes commands to its [Inbox], which distinguishes new, repeated and old commands. It checks leases with a
// [LeaseWatch], which compares no clocks.
//
// # Reading order
//
// text.go bounds messages, and failure.go has the reason and the message of a failure. state.go has the types, turns.go
// the protocol as tables, left.go what a step leaves that is not done, and due.go the effects of a state. event.go has the events. report.go records reports of
// parties, phase.go begins and ends phases, registering.go decides on each cluster of phase Registering, abort.go ends a migration early, also without its target hub or without clusters, and step.go is
// [Step]. status.go computes what users see, shard.go stores a state, and overlap.go compares the clusters of two
// migrations. inbox.go and lease.go are for agents. A file uses only files before it.
package hub
