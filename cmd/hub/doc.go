// Package hub is the protocol by which managed clusters move from one hub to another,
// and back. It is pure: it reads no clock, sends no message and asks no API server.
//
// A migration has three parties: the manager on the global hub, an agent on the source
// hub and one on the target hub. The manager keeps a [State]. [Step] makes the next
// state of it and an [Event]; [Due] says which effects a state calls for, and [Deadline]
// when time alone changes it. All three are total: an event that is late, repeated or
// unknown leaves the state as it is. Effects are computed from the state and never
// remembered beside it, so that a crash loses none. The manager writes a state with
// [State.Shards] and then [State.Progress], which is the commit; then it executes the
// effects and acknowledges the event.
//
// Each phase has turns, which follow one another; the tasks of one turn run at the same
// time. The table in turns.go is the protocol. A rollback has the order that real agents
// need: the source accepts, the target stops accepting, the bootstrap configuration is
// reverted, the source sees fresh leases, and only then the target deletes. Whatever
// happens, when nothing is due and no deadline is left, the phase is Completed or
// Failed, and exactly one hub accepts each cluster. A test walks all small worlds to
// see that.
//
// An agent passes commands to its [Inbox], which tells a new command from a repeated and
// an old one, and decides on leases by a [LeaseWatch], which compares no clocks.
//
// # Reading order
//
// text.go bounds messages, and failure.go has the reason and the message of a failure. state.go has the nouns, turns.go the protocol as a table, and due.go the
// effects that a state calls for. event.go has the events. report.go records what parties report,
// phase.go begins and ends phases, registering.go decides on each cluster of phase Registering, and
// step.go is [Step]. status.go shows a state to users, shard.go stores it, and overlap.go compares
// the clusters of two migrations. inbox.go and lease.go are for agents. A file uses only files before it.
package hub
