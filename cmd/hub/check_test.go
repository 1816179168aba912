package hub

import (
	"maps"
	"strings"
	"testing"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// faults are what may go wrong in one world: each party crashes once, and two messages are
// lost, doubled, overtaken or late.
var faults = budget{messages: 2, manager: true, source: true, target: true}

// aborted is a world in which a user aborts as well, at any time.
var aborted = budget{messages: 1, manager: true, source: true, target: true, abort: true}

// TestWorlds walks every world of two clusters. In each that ends, one hub has each
// cluster, the other has nothing of it, and no hub has deleted one that was not at the
// other hub.
//
// Matrix: H34.
func TestWorlds(t *testing.T) {
	cases := map[string]struct {
		able [2]ability
		left budget
	}{
		"Success":           {[2]ability{registers, registers}, faults},
		"OneIsRefused":      {[2]ability{registers, isRefused}, faults},
		"OneReachesNot":     {[2]ability{registers, reachesNot}, faults},
		"NoneRegisters":     {[2]ability{isRefused, reachesNot}, faults},
		"AbortedSuccess":    {[2]ability{registers, registers}, aborted},
		"AbortedIsRefused":  {[2]ability{registers, isRefused}, aborted},
		"AbortedReachesNot": {[2]ability{registers, reachesNot}, aborted},
	}
	total := 0
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			worlds, wrong := explore(realProtocol(), newWorld(tc.able, tc.left))
			t.Logf("%d worlds", worlds)
			total += worlds
			if wrong != "" {
				t.Error(wrong)
			}
		})
	}
	if total < 100_000 {
		t.Errorf("%d worlds, want more: the walk ends too early", total)
	}
}

// TestMutants shows that the walk finds mistakes: each mutant is the protocol with one.
//
// Matrix: H29, H30, H70, H72, H73, H75, H78.
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
				turns := backward[api.PhaseRegistering]
				backward[api.PhaseRegistering] = []turn{turns[0], turns[1], {{Target, []Action{DeleteCreated}}}, turns[2], turns[4], turns[5]}
				statesByAction[DeleteCreated] = []ClusterState{Returning}
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
				turns := backward[api.PhaseRegistering]
				backward[api.PhaseRegistering] = append([]turn{turns[1], turns[0]}, turns[2:]...)
			},
			want: "no hub accepts",
		},
		"ReleaseBeforeAccept": {
			reason: "The source releases clusters that the target does not accept yet.",
			able:   [2]ability{registers, registers},
			mutate: func(*protocol) {
				forward[api.PhaseRegistering] = []turn{{{Source, []Action{ReleaseClusters}}}, {{Target, []Action{AcceptClusters, AwaitRegistration}}}}
			},
			want: "no hub accepts",
		},
		"BootstrapNotReverted": {
			reason: "An agent that is refused by the target stays there until its bootstrap configuration changes.",
			able:   [2]ability{registers, isRefused},
			mutate: func(*protocol) {
				turns := forward[api.PhaseCleaning]
				forward[api.PhaseCleaning] = append([]turn{turns[0], turns[1], {{Source, []Action{AwaitReturn, DeleteMoved}}}}, turns[3:]...)
			},
			want: "the migration does not end",
		},
		"TokenRevokedFirst": {
			reason: "The account is deleted before the clusters have the target's own bootstrap kubeconfig.",
			able:   [2]ability{registers, registers},
			mutate: func(*protocol) {
				turns := forward[api.PhaseCleaning]
				forward[api.PhaseCleaning] = append([]turn{turns[5]}, turns[:5]...)
			},
			want: "the token of c1 is revoked",
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
						r.Stage, r.Attempt = s.Stage, s.Attempt
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
		"CommitBeforeShards": {
			reason: "The status is written before the ConfigMaps, and the manager crashes in between.",
			able:   [2]ability{registers, registers}, left: budget{manager: true},
			mutate: func(p *protocol) { p.commitFirst = true },
			want:   "c1",
		},
	}
	for name, tc := range mutants {
		t.Run(name, func(t *testing.T) {
			f, b, c := maps.Clone(forward), maps.Clone(backward), maps.Clone(statesByAction)
			defer func() { forward, backward, statesByAction = f, b, c }()
			p := realProtocol()
			tc.mutate(&p)
			worlds, wrong := explore(p, newWorld(tc.able, tc.left))
			what, _, _ := strings.Cut(wrong, ",")
			t.Logf("%d worlds: %s", worlds, what)
			if !strings.Contains(wrong, tc.want) || wrong == "" {
				t.Errorf("%s\nfound %q, want %q", tc.reason, wrong, tc.want)
			}
		})
	}
}
