package hub

import (
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// faults are what may go wrong in one world: each party crashes once, and messages are lost, doubled, overtaken or late.
// All at once would be more worlds than a test can walk.
var faults = []budget{
	{messages: 2}, {messages: 1, manager: true}, {messages: 1, source: true, target: true}, {manager: true, source: true, target: true},
}

// withAbort are worlds in which a user aborts as well, at any time.
var withAbort = []budget{{messages: 1, abort: true}, {manager: true, abort: true}, {source: true, target: true, abort: true}}

// isOfTransport reports whether all that goes wrong is that of messages and processes. It is the same in either order of hubs.
func (b budget) isOfTransport() bool {
	return b.messages > 0 && b == budget{messages: b.messages, manager: b.manager, source: b.source, target: b.target}
}

// bothOrders are those of the two ways to configure klusterlets. Both are checked.
var bothOrders = map[order]string{sourceFirst: "SourceFirst", targetFirst: "TargetFirst"}

// TestWorlds walks every world of two clusters. In each that ends, one hub has each cluster, the other has nothing of it, and no hub
// has deleted one that was not at the other hub. A cluster that a user has deleted, or that no longer answers, keeps no other one
// from its end. A hub that is lost, or whose agent is, keeps no cluster from the other hub, and a deleted migration ends.
//
// Matrix: H34, H84, H85, H86, H134.
func TestWorlds(t *testing.T) {
	cases := map[string]struct {
		able [2]ability
		left []budget
	}{
		"Success":           {[2]ability{registers, registers}, faults},
		"OneIsRefused":      {[2]ability{registers, isRefused}, faults},
		"OneReachesNot":     {[2]ability{registers, reachesNot}, faults},
		"NoneRegisters":     {[2]ability{isRefused, reachesNot}, faults},
		"AbortedSuccess":    {[2]ability{registers, registers}, withAbort},
		"AbortedIsRefused":  {[2]ability{registers, isRefused}, withAbort},
		"AbortedReachesNot": {[2]ability{registers, reachesNot}, withAbort},

		"Detached":           {[2]ability{registers, registers}, []budget{{manager: true, detach: true}, {target: true, detach: true}}},
		"DetachedIsRefused":  {[2]ability{isRefused, registers}, []budget{{messages: 1, detach: true}}},
		"DetachedReachesNot": {[2]ability{registers, reachesNot}, []budget{{detach: true, abort: true}}},
		"Silent":             {[2]ability{registers, registers}, []budget{{messages: 1, silence: true}, {manager: true, source: true, target: true, silence: true}}},
		"SilentIsRefused":    {[2]ability{registers, isRefused}, []budget{{messages: 1, silence: true}}},
		"SilentReachesNot":   {[2]ability{reachesNot, registers}, []budget{{messages: 1, silence: true}}},
		"SilentAborted":      {[2]ability{registers, isRefused}, []budget{{manager: true, silence: true, abort: true}}},
		"SilentDetached":     {[2]ability{registers, registers}, []budget{{silence: true, detach: true}}},
		"Removed":            {[2]ability{registers, isRefused}, []budget{{messages: 1, remove: true}}},
		"RemovedSilent":      {[2]ability{registers, registers}, []budget{{remove: true, silence: true}}},
		"Deaf":               {[2]ability{registers, registers}, []budget{{deaf: true, abort: true}, {manager: true, deaf: true}}},
		"DeafIsRefused":      {[2]ability{registers, isRefused}, []budget{{deaf: true, abort: true}}},
		"DeafReachesNot":     {[2]ability{reachesNot, registers}, []budget{{deaf: true, abort: true}}},
		"Dead":               {[2]ability{registers, registers}, []budget{{dead: true, abort: true}, {messages: 1, dead: true}}},
		"DeadIsRefused":      {[2]ability{registers, isRefused}, []budget{{dead: true, abort: true}}},
		"DeadSilent":         {[2]ability{registers, registers}, []budget{{dead: true, silence: true}}},
		"RemovedDeaf":        {[2]ability{registers, isRefused}, []budget{{manager: true, remove: true, deaf: true}}},
	}
	total := &atomic.Int64{}
	t.Cleanup(func() {
		if total.Load() < 100_000 {
			t.Errorf("%d worlds, want more: the walk ends too early", total.Load())
		}
	})
	for o, hub := range bothOrders {
		for name, tc := range cases {
			t.Run(hub+"/"+name, func(t *testing.T) {
				t.Parallel()
				for _, left := range tc.left {
					if o == targetFirst && left.isOfTransport() {
						continue
					}
					worlds, wrong := explore(realProtocol(), newWorld(o, tc.able, left))
					t.Logf("%+v: %d worlds", left, worlds)
					total.Add(int64(worlds))
					if wrong != "" {
						t.Errorf("%+v: %s", left, wrong)
					}
				}
			})
		}
	}
}

// TestMutants shows that the walk finds mistakes: each mutant is the protocol with one.
//
// Matrix: H29, H30, H70, H72, H73, H75, H78, H84, H85, H86, H134.
func TestMutants(t *testing.T) {
	mutants := map[string]struct {
		reason string
		able   [2]ability
		left   budget
		mutate func(*protocol)
		want   string
	}{
		"DeletionBeforeFreshLease": {
			reason: "The target deletes before the source has seen the cluster.",
			able:   [2]ability{isRefused, reachesNot},
			mutate: func(*protocol) {
				turns := returning[api.PhaseRegistering]
				returning[api.PhaseRegistering] = []turn{turns[0], turns[1], {{Target, []Action{DeleteCreated}}}, turns[2]}
			},
			want: "which is not at the source",
		},
		"StaleSuccess": {
			reason: "A hub shows Joined and Available for minutes after the cluster has left.",
			able:   [2]ability{isRefused, reachesNot},
			mutate: func(p *protocol) { p.staleLeases = true },
			want:   "which is not at the source",
		},
		"NoResend": {
			reason: "A command that is lost is never sent again.",
			able:   [2]ability{registers, registers}, left: budget{messages: 1},
			mutate: func(p *protocol) {
				p.due = func(s State) []Effect {
					for k, r := range s.Records {
						if r.Sent > 0 {
							r.Sent = 100
							s = s.clone()
							s.Records[k] = r
						}
					}
					return Due(s)
				}
			},
			want: "the migration does not end",
		},
		"RollbackAcceptOrderSwapped": {
			reason: "The target stops accepting before the source accepts: a dead target would keep clusters without a hub.",
			able:   [2]ability{registers, isRefused}, left: budget{abort: true},
			mutate: func(*protocol) {
				turns := returning[api.PhaseRegistering]
				returning[api.PhaseRegistering] = append([]turn{turns[1], turns[0]}, turns[2:]...)
			},
			want: "no hub accepts",
		},
		"ReleaseBeforeAccept": {
			reason: "The source releases clusters that the target does not accept yet.",
			able:   [2]ability{registers, registers},
			mutate: func(*protocol) {
				moving = append([]turn{{{Source, []Action{ReleaseClusters}}}, {{Target, []Action{AcceptClusters, AwaitRegistration}}}}, moving[2:]...)
			},
			want: "no hub accepts",
		},
		"BootstrapNotReverted": {
			reason: "An agent that is refused by the target stays there until its bootstrap configuration changes.",
			able:   [2]ability{registers, isRefused},
			mutate: func(*protocol) {
				turns := returning[api.PhaseRegistering]
				returning[api.PhaseRegistering] = []turn{turns[0], turns[1], {{Source, []Action{AwaitReturn}}}, turns[3]}
			},
			want: "the migration does not end",
		},
		"TokenRevokedFirst": {
			reason: "The account is deleted, and the clusters do not have the target's own bootstrap kubeconfig.",
			able:   [2]ability{registers, registers},
			mutate: func(*protocol) {
				moving = []turn{moving[0], moving[1], moving[3]}
			},
			want: "before the cluster has another",
		},
		"OldCommandsExecuted": {
			reason: "An agent executes a command that arrives after a later one.",
			able:   [2]ability{registers, registers}, left: budget{messages: 2, abort: true},
			mutate: func(p *protocol) {
				p.receive = func(i Inbox, c Command) (Inbox, Handling) {
					if c.Attempt == i.Last.Attempt {
						return i, Repeat
					}
					return Inbox{Last: c}, Execute
				}
			},
			want: "the target still approves registrations",
		},
		"OldReportsTaken": {
			reason: "The manager takes a report for the answer to a later command.",
			able:   [2]ability{isRefused, isRefused}, left: budget{messages: 2},
			mutate: func(p *protocol) {
				p.step = func(s State, e Event) State {
					if r, ok := e.(Report); ok {
						present := s.Record(r.Party)
						r.Stage, r.Attempt = present.Stage, present.Attempt
						e = r
					}
					return Step(s, e)
				}
			},
			want: "c1",
		},
		"DuplicatesNotAnswered": {
			reason: "An agent that has a command already does not repeat a report that was lost.",
			able:   [2]ability{isRefused, isRefused}, left: budget{messages: 1},
			mutate: func(p *protocol) {
				p.receive = func(i Inbox, c Command) (Inbox, Handling) {
					next, h := i.Receive(c)
					if h == Repeat {
						h = Ignore
					}
					return next, h
				}
			},
			want: "the migration does not end",
		},
		"TargetKubeconfigAlone": {
			reason: "The import controller of the target takes the kubeconfig of the source away from a cluster that has registered.",
			able:   [2]ability{registers, registers}, left: budget{abort: true},
			mutate: func(p *protocol) { p.targetAlone = true },
			want:   "the migration does not end",
		},
		"GoneIsFailure": {
			reason: "A step that does not find the ManagedCluster of a cluster fails.",
			able:   [2]ability{isRefused, registers}, left: budget{detach: true},
			mutate: func(p *protocol) { p.goneFails = true },
			want:   "the migration does not end",
		},
		"SilentHoldsOthers": {
			reason: "A command has the orders of clusters that have come together alone.",
			able:   [2]ability{registers, registers}, left: budget{silence: true},
			mutate: func(p *protocol) {
				p.due = func(s State) []Effect {
					if c := s.Clusters; s.walks() && s.Stage == api.PhaseCleaning && !c[0].HasEnded() && c[0].Turn < c[1].Turn {
						return nil
					}
					return Due(s)
				}
			},
			want: "c2 is Registered",
		},
		"DeletionWaits": {
			reason: "A deleted migration waits for a hub that never answers.",
			able:   [2]ability{registers, isRefused}, left: budget{remove: true, deaf: true},
			mutate: func(p *protocol) {
				p.step = func(s State, e Event) State {
					next := Step(s, e)
					next.Abandoned = false
					return next
				}
			},
			want: "the migration does not end",
		},
		"LostTargetIsAwaited": {
			reason: "A cluster returns only when the target has stopped to accept it, which a lost target never does.",
			able:   [2]ability{registers, isRefused}, left: budget{dead: true},
			mutate: func(*protocol) {
				turns := returning[api.PhaseRegistering]
				awaited := turn{{Target, []Action{StopAccepting, RemovePauses}}} // the turn of this place is never left
				returning[api.PhaseRegistering] = []turn{turns[0], awaited, turns[2], turns[3]}
			},
			want: "is not back",
		},
		"LostSourceIsAwaited": {
			reason: "The target finishes a cluster when the source has deleted it, which a lost source never does.",
			able:   [2]ability{registers, registers}, left: budget{dead: true},
			mutate: func(*protocol) { moving = []turn{moving[0], moving[1], moving[3], moving[2]} },
			want:   "is not finished at the target hub",
		},
		"CommitBeforeShards": {
			reason: "The status is written before the ConfigMaps, and the manager crashes in between.",
			able:   [2]ability{registers, registers}, left: budget{manager: true},
			mutate: func(p *protocol) { p.commitFirst = true },
			want:   "c1",
		},
	}
	for name, tc := range mutants {
		for o, hub := range bothOrders {
			t.Run(hub+"/"+name, func(t *testing.T) {
				forth, back := moving, maps.Clone(returning)
				defer func() { moving, returning = forth, back }()
				p := realProtocol()
				tc.mutate(&p)
				worlds, wrong := explore(p, newWorld(o, tc.able, tc.left))
				what, _, _ := strings.Cut(wrong, ",")
				t.Logf("%d worlds: %s", worlds, what)
				if !strings.Contains(wrong, tc.want) || wrong == "" {
					t.Errorf("%s\nfound %q, want %q", tc.reason, wrong, tc.want)
				}
			})
		}
	}
}
