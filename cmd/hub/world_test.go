package hub

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// A world is two hubs, their agents, two clusters, and what is on the way between them. It
// is as coarse as it can be while the traps of real agents are still in it.
type world struct {
	state    State
	agents   [2]agent // source, target
	toAgent  [2][]Command
	toMgr    [2][]Report
	clusters [2]klusterlet
	order    order
	granted  bool    // the target approves registrations
	deaf     [2]bool // the agent on the hub does not answer any more
	dead     [2]bool // nor does the hub itself
	removed  bool    // the migration has no finalizer any more
	left     budget
	wrong    string // the invariant that is broken
}

// budget is what may still go wrong.
type budget struct {
	messages                int  // lost, doubled, overtaken or late
	manager, source, target bool // crashes
	abort                   bool // a user aborts
	remove                  bool // a user deletes the migration
	detach                  bool // a user deletes the ManagedCluster of one cluster at one hub
	silence                 bool // one cluster ends for ever to answer
	deaf                    bool // the agent on one hub ends for ever to answer
	dead                    bool // one hub ends for ever to answer
}

// order is the order of the bootstrap kubeconfigs of a cluster. An agent that has no hub takes the first one that takes it.
type order uint8

const (
	sourceFirst order = iota // of a ManifestWork of the migration
	targetFirst              // of an import controller: its own hub is the last one
)

// agent has a stored inbox. The rest of it does not survive a crash.
type agent struct {
	inbox  Inbox
	next   [2]int // by cluster, how many of the orders that name it are done
	whole  int    // how many orders that name no cluster are done
	failed [2]bool
	gone   [2]bool
}

// place is where a cluster's agent is.
type place uint8

const (
	atSource place = iota
	atTarget
	nowhere // no hub that it knows accepts it
	stuck   // it chose the target and was refused there: only a restart helps
)

// ability is what comes of an attempt to register at the target.
type ability uint8

const (
	registers ability = iota
	isRefused         // its CSR is not approved
	reachesNot
)

type klusterlet struct {
	name             string
	able             ability
	at               place
	bootstrap        bool // it has the target's bootstrap kubeconfig
	source           bool // it has the source's bootstrap kubeconfig
	keepsSource      bool // the target configures it with the source's as well as with its own
	finished         bool // it has the target's own, and needs the token no more
	object, accepted [2]bool
	detached         [2]bool // a user has deleted its ManagedCluster
	silent           bool
}

// protocol is what is checked: the real one, or a mutant.
type protocol struct {
	step        func(State, Event) State
	due         func(State) []Effect
	receive     func(Inbox, Command) (Inbox, Handling)
	commitFirst bool // write the status before the shards
	staleLeases bool // take a lease for fresh that was never renewed
	goneFails   bool // what is gone is a failure
	targetAlone bool // the target configures klusterlets with its own kubeconfig alone
}

func realProtocol() protocol {
	return protocol{step: Step, due: Due, receive: Inbox.Receive}
}

var parties = [2]Party{Source, Target}

func newWorld(o order, able [2]ability, left budget) world {
	spec := api.ManagedClusterMigrationSpec{From: "hub1", To: "hub2", IncludedManagedClusters: []api.ClusterName{"c1", "c2"}}
	w := world{state: Step(New(spec), Start{At: epoch}), order: o, left: left}
	for i := range w.clusters {
		w.clusters[i] = klusterlet{name: fmt.Sprintf("c%d", i+1), able: able[i], source: true, object: [2]bool{true, false}, accepted: [2]bool{true, false}}
	}
	w.state.Since = epoch
	return w
}

// clone shares only what is never changed in place.
func (w world) clone() world {
	for i := range parties {
		w.toAgent[i] = slices.Clone(w.toAgent[i])
		w.toMgr[i] = slices.Clone(w.toMgr[i])
	}
	return w
}

// key tells worlds apart that can have different futures. Attempts are only compared with one another, so their order is
// enough.
func (w *world) key(b []byte) []byte {
	s := w.state
	rank := w.ranks()
	b = append(b[:0], byte(StageNumber(s.Stage)), byte(s.Turn), rank(s.Attempt), byte(min(s.Thirds, maxThirds+afterForget+1)), byte(StageNumber(s.RollbackStage)),
		flags(s.inFinalPhase(), s.Deleting, w.granted, w.left.manager, w.left.source, w.left.target, w.left.abort), byte(w.left.messages),
		flags(w.left.remove, w.left.detach, w.left.silence, w.left.deaf, w.deaf[0], w.deaf[1], w.removed, s.Abandoned), flags(w.left.dead, w.dead[0], w.dead[1]))
	for _, c := range s.Clusters {
		b = append(b, byte(slices.Index(clusterStates[:], c.State)), byte(c.Turn), rank(c.Attempt), flags(c.Note != ""))
	}
	for _, p := range [3]Party{Manager, Source, Target} {
		if r, ok := s.Records[s.key(p)]; ok {
			b = append(b, p[0], rank(r.Attempt), byte(StageNumber(r.Stage)), byte(r.Sent), flags(r.Started, r.Finished, r.Error != (Failure{})))
			for _, c := range s.Clusters {
				b = append(b, flags(r.ClusterErrors[c.Name] != (Failure{})))
			}
		}
	}
	for i := range parties {
		a := &w.agents[i]
		b = append(b, '|', byte(a.next[0]), byte(a.next[1]), byte(a.whole), flags(a.failed[0], a.failed[1], a.gone[0], a.gone[1]))
		b = commandKey(b, a.inbox.Last, rank)
		if r := a.inbox.Report; r != nil {
			b = reportKey(append(b, 'r'), *r, rank)
		}
		for _, c := range w.toAgent[i] {
			b = commandKey(append(b, '>'), c, rank)
		}
		for _, r := range w.toMgr[i] {
			b = reportKey(append(b, '<'), r, rank)
		}
	}
	for _, c := range w.clusters {
		b = append(b, byte(c.at), flags(c.bootstrap, c.source, c.keepsSource, c.finished, c.object[0], c.object[1], c.accepted[0], c.accepted[1]), flags(c.detached[0], c.detached[1], c.silent))
	}
	return b
}

// ranks returns the order of the attempts of a world.
func (w *world) ranks() func(int64) byte {
	all := []int64{0, w.state.Attempt}
	for _, c := range w.state.Clusters {
		all = append(all, c.Attempt)
	}
	for _, r := range w.state.Records {
		all = append(all, r.Attempt)
	}
	for i := range parties {
		all = append(all, w.agents[i].inbox.Last.Attempt)
		for _, c := range w.toAgent[i] {
			all = append(all, c.Attempt)
		}
		for _, r := range w.toMgr[i] {
			all = append(all, r.Attempt)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return func(attempt int64) byte {
		i, _ := slices.BinarySearch(all, attempt)
		return byte(i)
	}
}

func commandKey(b []byte, c Command, rank func(int64) byte) []byte {
	b = append(b, rank(c.Attempt), byte(StageNumber(c.Stage)))
	for _, o := range c.Orders {
		b = append(b, o.Action[0], o.Action[len(o.Action)-1], byte(len(o.Action)), names(o.Clusters))
	}
	return b
}

func reportKey(b []byte, r Report, rank func(int64) byte) []byte {
	b = append(b, rank(r.Attempt), flags(r.Finished), names(r.Done))
	for _, name := range [2]string{"c1", "c2"} {
		b = append(b, flags(r.Gone[name] != "", r.ClusterErrors[name] != (Failure{})))
	}
	return b
}

var clusterStates = [...]ClusterState{Selected, Registered, Moved, Returning, Returned, Restored, Gone, Forgotten}

// flags packs booleans.
func flags(list ...bool) (b byte) {
	for i, set := range list {
		if set {
			b |= 1 << i
		}
	}
	return b
}

// names packs a set of c1 and c2.
func names(list []string) (b byte) {
	for _, name := range list {
		b |= name[1]
	}
	return b
}

// move is one thing that happens.
type move struct {
	name string
	next world
}

// moves returns all that can happen next. Time passes only when nothing else happens, or
// else something is late.
func (w *world) moves(p protocol) []move {
	if w.removed {
		return nil
	}
	if due := p.due(w.state); len(due) > 0 {
		return w.effect(p, due[0])
	}
	var moves []move
	add := func(name string, next world) { moves = append(moves, move{name, next}) }
	for i := range parties {
		w.commandMoves(p, i, add)
		w.reportMoves(p, i, add)
		w.agentMoves(p, i, add)
	}
	for i := range w.clusters {
		if next := w.clone(); next.clusters[i].change(next.order, next.granted, next.dead) {
			add(next.clusters[i].name+" changes hubs", next)
		}
	}
	w.timeMoves(p, len(moves) > 0, add)
	w.userMoves(p, add)
	return moves
}

// userMoves are what users do, and what clusters and hubs suffer, at any moment.
func (w *world) userMoves(p protocol, add func(string, world)) {
	if w.left.abort && !w.state.inFinalPhase() {
		next := w.clone()
		next.left.abort = false
		next.step(p, Rollback{At: next.now()})
		add("a user aborts", next)
	}
	if w.left.remove && !w.state.Deleting {
		next := w.clone()
		next.left.remove = false
		next.step(p, Delete{At: next.now()})
		add("a user deletes the migration", next)
	}
	for i, p := range parties {
		if w.left.deaf {
			next := w.clone()
			next.left.deaf, next.deaf[i] = false, true
			add("the agent on "+p.String()+" is silent", next)
		}
		if w.left.dead {
			next := w.clone()
			next.left.dead, next.deaf[i], next.dead[i] = false, true, true
			add(p.String()+" is lost", next)
		}
		for n, c := range w.clusters {
			if w.left.detach && c.object[i] {
				next := w.clone()
				next.left.detach = false
				d := &next.clusters[n]
				d.object[i], d.accepted[i], d.detached[i] = false, false, true
				add(fmt.Sprintf("a user deletes %s at the %s", c.name, p), next)
			}
		}
	}
	for n, c := range w.clusters {
		if w.left.silence {
			next := w.clone()
			next.left.silence, next.clusters[n].silent = false, true
			add(c.name+" is silent", next)
		}
	}
}

const (
	// maxThirds is when a migration counts as one that does not end, in thirds of the timeout after its final phase began.
	maxThirds = 9
	// afterForget is how much longer that is after a user has forgotten a cluster.
	afterForget = 5
)

func (w *world) timeMoves(p protocol, busy bool, add func(string, world)) {
	deadline, ok := Deadline(w.state)
	if !ok || busy && (w.left.messages == 0 || w.state.inFinalPhase()) {
		return
	}
	next := w.clone()
	if busy {
		next.left.messages--
	}
	limit := maxThirds
	if w.state.hasClusterIn(Forgotten) {
		limit += afterForget
	}
	if w.state.inFinalPhase() && w.state.Thirds > limit {
		w.giveUp(p, next, add)
		return
	}
	next.step(p, Tick{At: deadline})
	add("time passes", next)
}

// giveUp is what a user does with a migration that does not end by itself.
func (w *world) giveUp(p protocol, next world, add func(string, world)) {
	if (w.deaf[0] || w.deaf[1]) && !w.state.Deleting {
		next.wrong = w.checkDeaf()
		next.left.remove = false
		next.step(p, Delete{At: next.now()})
		add("a user deletes the migration, whose hub is silent", next)
		return
	}
	for i, c := range w.state.Clusters {
		if w.clusters[i].silent && !c.HasEnded() {
			next.wrong = w.checkEndOf(1 - i)
			next.step(p, Forget{At: next.now(), Clusters: []string{c.Name}})
			add("a user forgets "+c.Name, next)
			return
		}
	}
	next.wrong = "the migration does not end"
	next.state.Thirds++ // another world
	add("time passes", next)
}

// checkDeaf: a hub that does not answer keeps no cluster from the other hub. The klusterlet of a cluster that returns is restored without the
// target hub, and the cluster is back unless the target hub still accepts it. A cluster that moves needs nothing of the source hub any more.
func (w *world) checkDeaf() string {
	const source, target = 0, 1
	for i, c := range w.clusters {
		state := w.state.Clusters[i]
		isBack := c.at == atSource && state.State == Returned
		switch {
		case c.lost() || state.HasEnded():
		case w.deaf[target] && state.returns() && (c.bootstrap || !isBack && (c.at != atTarget || w.dead[target])):
			return fmt.Sprintf("the target hub is silent, and %s, which is %s, is not back", c.name, state.State)
		case w.deaf[source] && state.State == Registered && (c.at != atTarget || !c.finished):
			return fmt.Sprintf("the source hub is silent, and %s, which is %s, is not finished at the target hub", c.name, state.State)
		}
	}
	return ""
}

func (w *world) now() time.Time {
	return epoch.Add(time.Duration(w.state.Thirds) * (w.state.timeout() / 3))
}

// step makes time relative to the beginning of the phase, so that worlds can be compared.
func (w *world) step(p protocol, e Event) {
	w.state = p.step(w.state, e)
	w.state.Since = epoch
	for k, r := range w.state.Records { // history decides nothing
		if k != w.state.key(k.Party) || !w.state.walks() && r.Attempt != w.state.Attempt {
			delete(w.state.Records, k)
		}
	}
}

// crashed is the state of a manager that was killed between its two writes.
func (w *world) crashed(p protocol, e Event) State {
	after := p.step(w.state, e)
	shards, progress, phase := after, w.state, w.state.Phase
	if p.commitFirst {
		shards, progress, phase = w.state, after, after.Phase
	}
	spec := api.ManagedClusterMigrationSpec{}
	data := []map[string]string{shards.Shards("m")[0].Data}
	s, err := Restore(spec, phase, progress.Progress(1), data)
	if err != nil {
		panic(err)
	}
	s.Since = epoch
	return s
}

// effect executes the first effect that is due. The order among effects does not matter.
func (w *world) effect(p protocol, e Effect) []move {
	next := w.clone()
	if e.Party == Manager {
		if e.Orders[0].Action == RemoveFinalizer {
			next.removed = true
			return []move{{"remove the finalizer", next}}
		}
		next.wrong = next.checkManager(e)
		next.step(p, Report{At: next.now(), Party: Manager, Stage: e.Stage, Attempt: e.Attempt, Finished: true})
		return []move{{"do " + e.Key, next}}
	}
	i := slices.Index(parties[:], e.Party)
	next.toAgent[i] = append(next.toAgent[i], Command{Stage: e.Stage, Attempt: e.Attempt, Orders: e.Orders})
	moves := []move{}
	if w.left.manager {
		crashed := next.clone()
		crashed.left.manager = false
		moves = append(moves, move{"send " + e.Key + ", and the manager crashes", crashed})
	}
	next.step(p, Sent{At: next.now(), Key: e.Key})
	return append(moves, move{"send " + e.Key, next})
}

// checkManager: the token is revoked when no cluster may need it.
func (w *world) checkManager(e Effect) string {
	for _, o := range e.Orders {
		for _, c := range w.clusters {
			if o.Action == RevokeBootstrap && !c.lost() && (c.at != atSource || c.bootstrap) && !c.finished {
				return "the token of " + c.name + " is revoked before the cluster has another"
			}
		}
	}
	return ""
}

func (w *world) commandMoves(p protocol, i int, add func(string, world)) {
	queue := w.toAgent[i]
	if len(queue) == 0 || w.deaf[i] {
		return
	}
	what := fmt.Sprintf("command %d to %s", queue[0].Attempt, parties[i])
	deliver := func(n int, keep bool) world {
		next := w.clone()
		c := next.toAgent[i][n]
		if !keep {
			next.toAgent[i] = slices.Delete(next.toAgent[i], n, n+1)
		}
		inbox, handling := p.receive(next.agents[i].inbox, c)
		switch {
		case handling == Execute:
			next.agents[i] = agent{inbox: inbox}
		case handling == Repeat && inbox.Report != nil:
			next.toMgr[i] = append(next.toMgr[i], *inbox.Report)
		}
		return next
	}
	add(what, deliver(0, false))
	w.messageFaults(what, len(queue), deliver, func(next *world) { next.toAgent[i] = next.toAgent[i][1:] }, add)
}

// messageFaults are what may happen to the first of some messages. deliver returns the world
// in which the nth is delivered, and is still there where keep says so.
func (w *world) messageFaults(what string, queued int, deliver func(n int, keep bool) world, lose func(*world), add func(string, world)) {
	if w.left.messages == 0 {
		return
	}
	fault := func(what string, next world) {
		next.left.messages--
		add(what, next)
	}
	lost := w.clone()
	lose(&lost)
	fault(what+" is lost", lost)
	fault(what+" is doubled", deliver(0, true))
	if queued > 1 {
		fault(what+" is overtaken", deliver(1, false))
	}
}

func (w *world) reportMoves(p protocol, i int, add func(string, world)) {
	queue := w.toMgr[i]
	if len(queue) == 0 {
		return
	}
	what := fmt.Sprintf("report on %d of %s", queue[0].Attempt, parties[i])
	deliver := func(n int, keep bool) world {
		next := w.clone()
		r := next.toMgr[i][n]
		if !keep {
			next.toMgr[i] = slices.Delete(next.toMgr[i], n, n+1)
		}
		r.At = next.now()
		next.step(p, r)
		return next
	}
	add(what, deliver(0, false))
	if w.left.manager {
		crashed := w.clone()
		crashed.left.manager = false
		r := queue[0]
		r.At = crashed.now()
		crashed.state = crashed.crashed(p, r)
		add(what+", and the manager crashes", crashed)
	}
	w.messageFaults(what, len(queue), deliver, func(next *world) { next.toMgr[i] = next.toMgr[i][1:] }, add)
}

func (w *world) agentMoves(p protocol, i int, add func(string, world)) {
	a := w.agents[i]
	if r := a.inbox.Report; r != nil && r.Finished || w.deaf[i] {
		return
	}
	next := w.clone()
	if action := next.execute(p, i); action != "" {
		add(fmt.Sprintf("%s does %s", parties[i], action), next)
	}
	crash := [2]*bool{&next.left.source, &next.left.target}
	if fresh := (agent{inbox: a.inbox}); (a.next != fresh.next || a.whole > 0) && [2]bool{w.left.source, w.left.target}[i] {
		next = w.clone()
		*crash[i] = false
		next.agents[i] = fresh
		add(string(parties[i])+" crashes", next)
	}
}

// execute does the first order of the last command that can be done now, for all clusters that have come to it. It
// reports what is done.
func (w *world) execute(p protocol, i int) Action {
	a := &w.agents[i]
	seen, whole, progress := [2]int{}, 0, false
	var done Action
	for _, order := range a.inbox.Last.Orders {
		if len(order.Clusters) == 0 {
			if whole == a.whole && done == "" {
				w.granted = order.Action == GrantRegistration || w.granted && order.Action != RevokeRegistration
				a.whole++
				done = order.Action
			}
			whole++
			continue
		}
		acted := false
		for n := range w.clusters {
			c := &w.clusters[n]
			if !slices.Contains(order.Clusters, c.name) {
				continue
			}
			if mine := seen[n] == a.next[n] && !a.failed[n]; mine && done == "" {
				what := c.outcome(order.Action, i, p.staleLeases)
				if what == isGone && p.goneFails {
					what = fails
				}
				switch what {
				case waits:
				case fails:
					a.failed[n] = true
					acted, progress = true, true
				case isGone:
					a.gone[n] = true
					a.next[n]++
					acted, progress = true, true
				case isDone:
					if wrong := c.check(order.Action); wrong != "" {
						w.wrong = wrong
					}
					c.apply(p, order.Action)
					a.next[n]++
					acted, progress = true, true
				}
			}
			seen[n]++
		}
		if acted {
			done = order.Action
		}
	}
	finished := a.whole == whole
	for n := range w.clusters {
		finished = finished && (a.next[n] >= seen[n] || a.failed[n])
	}
	if len(a.inbox.Last.Orders) > 0 && (finished || progress) {
		w.answer(i, finished, seen)
	}
	return done
}

// answer reports the clusters for which the last of their orders is done.
func (w *world) answer(i int, finished bool, orders [2]int) {
	a := &w.agents[i]
	r := Report{Party: parties[i], Stage: a.inbox.Last.Stage, Attempt: a.inbox.Last.Attempt, Finished: finished}
	for n, c := range w.clusters {
		switch {
		case a.failed[n]:
			if r.ClusterErrors == nil {
				r.ClusterErrors = map[string]Failure{}
			}
			r.ClusterErrors[c.name] = Failure{Message: "no luck"}
		case orders[n] > 0 && a.next[n] >= orders[n]:
			r.Done = append(r.Done, c.name)
			if a.gone[n] {
				r.Gone = map[string]string{c.name: "gone"}
			}
		}
	}
	if !finished && len(r.Done) == 0 && r.ClusterErrors == nil {
		return
	}
	a.inbox = a.inbox.Answer(r)
	w.toMgr[i] = append(w.toMgr[i], r)
}

// outcome is what comes of an action for a cluster now.
type outcome uint8

const (
	waits outcome = iota
	isDone
	fails
	isGone
)

func (c *klusterlet) outcome(a Action, hub int, stale bool) outcome {
	if c.detached[hub] && !c.object[hub] {
		switch a {
		case RestoreAcceptance, RevertBootstrap, AwaitReturn, FinishMoved:
			return isGone
		case ReleaseClusters, StopAccepting, DeleteCreated, DeleteMoved, RemovePauses, ReceiveResources:
		default:
			return fails
		}
	}
	is := func(can bool) outcome {
		if can {
			return isDone
		}
		return waits
	}
	switch a {
	case AwaitRegistration:
		return is(c.at == atTarget && !c.silent)
	case AwaitReturn:
		return is(c.at == atSource && !c.silent || stale)
	case InstallBootstrap, FinishMoved:
		return is(!c.silent)
	}
	return isDone
}

// lost reports whether a user has deleted the cluster, or whether it does not answer any more.
func (c *klusterlet) lost() bool { return c.silent || c.detached[0] || c.detached[1] }

// check: the objects of a hub are deleted only when the cluster is at the other one.
func (c *klusterlet) check(a Action) string {
	switch {
	case c.detached[0] && a == DeleteCreated && c.at == atTarget:
		return "the target deletes " + c.name + ", which is there, and which a user has deleted at the source"
	case c.detached[1] && !c.finished && a == DeleteMoved:
		return "the source deletes " + c.name + ", which a user has deleted at the target"
	case c.detached[0], c.detached[1]:
		return ""
	case a == DeleteMoved && c.at != atTarget:
		return "the source deletes " + c.name + ", which is not at the target"
	case a == DeleteCreated && c.at != atSource:
		return "the target deletes " + c.name + ", which is not at the source"
	}
	return ""
}

func (c *klusterlet) apply(p protocol, a Action) {
	const source, target = 0, 1
	switch a {
	case InstallBootstrap:
		c.bootstrap = true
	case RevertBootstrap:
		c.bootstrap = false
	case ReceiveResources:
		c.object[target], c.keepsSource = true, !p.targetAlone
	case AcceptClusters:
		c.accepted[target] = true
	case StopAccepting:
		c.accepted[target] = false
	case ReleaseClusters:
		c.accepted[source] = false
	case RestoreAcceptance:
		c.accepted[source] = true
	case FinishMoved:
		c.finished, c.source, c.keepsSource = true, false, false
	case DeleteMoved:
		c.object[source], c.accepted[source] = false, false
	case DeleteCreated:
		c.object[target], c.accepted[target] = false, false
	}
}

// change is what happens to the cluster by itself. Its agent prefers its own hub, then takes
// the first in its order that accepts it, or that does not know it and approves it. At the
// target, the import controller configures it. An agent with one kubeconfig stays at its hub,
// also at one that does not accept it any more. A hub that is lost takes none.
func (c *klusterlet) change(o order, granted bool, dead [2]bool) bool {
	const source, target = 0, 1
	if c.silent {
		return false
	}
	sourceTakes := c.source && c.object[source] && c.accepted[source] && !dead[source]
	targetTakes := c.bootstrap && (c.object[target] && c.accepted[target] || !c.object[target] && granted) && !dead[target] && c.able != reachesNot
	was := *c
	switch c.at {
	case atSource:
		if !sourceTakes {
			c.at = nowhere
		}
	case atTarget:
		switch accepted := c.object[target] && c.accepted[target] && !dead[target]; {
		case accepted && !c.keepsSource:
			c.source = false
		case !accepted && c.source:
			c.at = nowhere
		}
	case stuck:
		if !c.bootstrap {
			c.at = nowhere
		}
	case nowhere:
		switch {
		case sourceTakes && (o == sourceFirst || !targetTakes):
			c.at = atSource
		case targetTakes && c.able == registers && c.object[target]:
			c.at = atTarget
		case targetTakes: // it waits there for a certificate, also if it has made its own ManagedCluster, which the hub does not accept
			c.at = stuck
		}
	}
	return *c != was
}

// check returns the invariant that a world breaks.
func (w *world) check() string {
	for _, c := range w.clusters {
		if c.detached[0] || c.detached[1] {
			continue
		}
		if !c.object[0] && !c.object[1] {
			return "no hub has " + c.name
		}
		if !(c.object[0] && c.accepted[0]) && !(c.object[1] && c.accepted[1]) {
			return "no hub accepts " + c.name
		}
	}
	return w.wrong
}

// checkEnd returns what is wrong with a world in which nothing happens any more.
func (w *world) checkEnd() string {
	if !w.state.Settled() {
		return fmt.Sprintf("nothing happens any more in phase %s, turn %d", w.state.Phase, w.state.Turn)
	}
	if w.state.Deleting != w.removed {
		return "the migration is deleted, and its finalizer stays"
	}
	if (w.deaf[0] || w.deaf[1]) && w.state.Abandoned {
		return ""
	}
	for i := range w.clusters {
		if wrong := w.checkEndOf(i); wrong != "" {
			return wrong
		}
	}
	if w.granted && !w.state.Abandoned {
		return "the target still approves registrations"
	}
	return ""
}

// checkEndOf returns what is wrong with a cluster that has nothing left to wait for.
func (w *world) checkEndOf(i int) string {
	c, state := w.clusters[i], w.state.Clusters[i].State
	if c.lost() {
		if !w.state.Clusters[i].HasEnded() && w.state.Stage != "" && !w.state.Abandoned {
			return fmt.Sprintf("%s is %s in phase %s", c.name, state, w.state.Phase)
		}
		return ""
	}
	hub := atSource
	if state == Moved {
		hub = atTarget
	}
	switch other := 1 - hub; {
	case w.state.Phase == api.PhaseCompleted && state != Moved && state != Restored,
		w.state.Phase == api.PhaseFailed && w.state.RollbackStage != "" && state != Restored:
		return fmt.Sprintf("%s is %s in phase %s", c.name, state, w.state.Phase)
	case w.dead[hub]: // the cluster is lost with it
		return ""
	case c.at != hub:
		return fmt.Sprintf("%s is %s, and its agent is at %d", c.name, state, c.at)
	case c.object[other] && !w.dead[other]:
		return fmt.Sprintf("%s is %s, and the other hub still has it", c.name, state)
	case !c.finished && c.bootstrap:
		return c.name + " still has the bootstrap kubeconfig of the target"
	}
	return ""
}

// explore walks all worlds, and returns how many there are, and the way to the first one
// that is wrong.
func explore(p protocol, start world) (worlds int, wrong string) {
	seed := maphash.MakeSeed()
	type step struct {
		world
		from int
		name string
	}
	var buffer []byte
	seen := map[uint64]struct{}{}
	path := []step{{world: start, from: -1}}
	trail := func(i int, what string) string {
		var names []string
		for ; i > 0; i = path[i].from {
			names = append(names, path[i].name)
		}
		slices.Reverse(names)
		return what + ", after:\n  " + strings.Join(names, "\n  ")
	}
	for i := 0; i < len(path); i++ {
		w := path[i].world
		path[i].world = world{} // only the names of the moves are needed from now on
		moves := w.moves(p)
		if len(moves) == 0 {
			if what := w.checkEnd(); what != "" {
				return len(path), trail(i, what)
			}
		}
		for _, m := range moves {
			buffer = m.next.key(buffer)
			h := maphash.Bytes(seed, buffer)
			if _, ok := seen[h]; ok {
				continue
			}
			seen[h] = struct{}{}
			path = append(path, step{m.next, i, m.name})
			if what := m.next.check(); what != "" {
				return len(path), trail(len(path)-1, what)
			}
		}
	}
	return len(path), ""
}
