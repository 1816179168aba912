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
	granted  bool // the target approves registrations
	left     budget
	wrong    string // the invariant that is broken
}

// budget is what may still go wrong.
type budget struct {
	messages                int  // lost, doubled, overtaken or late
	manager, source, target bool // crashes
	abort                   bool
}

// agent has a stored inbox. The rest of it does not survive a crash.
type agent struct {
	inbox Inbox
	next  int      // order of the last command
	done  []string // clusters for which the present order is done
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
}

// protocol is what is checked: the real one, or a mutant.
type protocol struct {
	step        func(State, Event) State
	due         func(State) []Effect
	receive     func(Inbox, Command) (Inbox, Handling)
	commitFirst bool // write the status before the shards
	staleLeases bool // take a lease for fresh that was never renewed
	targetAlone bool // the target configures klusterlets with its own kubeconfig alone
}

func realProtocol() protocol {
	return protocol{step: Step, due: Due, receive: Inbox.Receive}
}

var parties = [2]Party{Source, Target}

func newWorld(able [2]ability, left budget) world {
	spec := api.ManagedClusterMigrationSpec{From: "hub1", To: "hub2", IncludedManagedClusters: []api.ClusterName{"c1", "c2"}}
	w := world{state: Step(New(spec), Start{At: epoch}), left: left}
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
		w.agents[i].done = slices.Clone(w.agents[i].done)
	}
	return w
}

// key tells worlds apart that can have different futures.
func (w *world) key(b []byte) []byte {
	s := w.state
	b = append(b[:0], byte(StageNumber(s.Stage)), byte(s.Turn), byte(s.Attempt), byte(min(s.Thirds, 12)), byte(StageNumber(s.RollbackStage)),
		flags(s.inFinalPhase(), s.Deleting, w.granted, w.left.manager, w.left.source, w.left.target, w.left.abort), byte(w.left.messages))
	for _, c := range s.Clusters {
		b = append(b, byte(slices.Index(clusterStates[:], c.State)))
	}
	for _, p := range [3]Party{Manager, Source, Target} {
		if r, ok := s.Records[Key{p, s.Stage}]; ok && r.Attempt == s.Attempt {
			b = append(b, p[0], byte(r.Sent), flags(r.Started, r.Finished, r.failed()))
		}
	}
	for i := range parties {
		a := &w.agents[i]
		b = append(b, '|', byte(a.inbox.Last.Attempt), byte(a.next), names(a.done))
		if r := a.inbox.Report; r != nil {
			b = append(b, 'r', flags(r.Finished), names(r.Done))
		}
		for _, c := range w.toAgent[i] {
			b = append(b, '>', byte(c.Attempt))
		}
		for _, r := range w.toMgr[i] {
			b = append(b, '<', byte(r.Attempt), flags(r.Finished), names(r.Done))
		}
	}
	for _, c := range w.clusters {
		b = append(b, byte(c.at), flags(c.bootstrap, c.source, c.keepsSource, c.finished, c.object[0], c.object[1], c.accepted[0], c.accepted[1]))
	}
	return b
}

var clusterStates = [...]ClusterState{Selected, Registered, Moved, Returning, Returned, Restored}

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
		if next := w.clone(); next.clusters[i].change(next.granted) {
			add(next.clusters[i].name+" changes hubs", next)
		}
	}
	w.timeMoves(p, len(moves) > 0, add)
	if w.left.abort && !w.state.inFinalPhase() {
		next := w.clone()
		next.left.abort = false
		next.step(p, Rollback{At: next.now()})
		add("a user aborts", next)
	}
	return moves
}

func (w *world) timeMoves(p protocol, busy bool, add func(string, world)) {
	deadline, ok := Deadline(w.state)
	if !ok || busy && (w.left.messages == 0 || w.state.inFinalPhase()) {
		return
	}
	next := w.clone()
	if busy {
		next.left.messages--
	}
	if w.state.inFinalPhase() && w.state.Thirds > 9 {
		next.wrong = "the migration does not end"
	}
	next.step(p, Tick{At: deadline})
	add("time passes", next)
}

func (w *world) now() time.Time {
	return epoch.Add(time.Duration(w.state.Thirds) * (w.state.timeout() / 3))
}

// step makes time relative to the beginning of the phase, so that worlds can be compared.
func (w *world) step(p protocol, e Event) {
	w.state = p.step(w.state, e)
	w.state.Since = epoch
	for k, r := range w.state.Records { // history decides nothing
		if r.Attempt != w.state.Attempt {
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
			if o.Action == RevokeBootstrap && (c.at != atSource || c.bootstrap) && !c.finished {
				return "the token of " + c.name + " is revoked before the cluster has another"
			}
		}
	}
	return ""
}

func (w *world) commandMoves(p protocol, i int, add func(string, world)) {
	queue := w.toAgent[i]
	if len(queue) == 0 {
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
	if a.next >= len(a.inbox.Last.Orders) {
		return
	}
	next := w.clone()
	if next.execute(p, i) {
		add(fmt.Sprintf("%s does %s", parties[i], a.inbox.Last.Orders[a.next].Action), next)
	}
	crash := [2]*bool{&next.left.source, &next.left.target}
	if a.next > 0 && [2]bool{w.left.source, w.left.target}[i] {
		next = w.clone()
		*crash[i] = false
		next.agents[i] = agent{inbox: a.inbox}
		add(string(parties[i])+" crashes", next)
	}
}

// execute does what is next in the last command, as far as it can be done now.
func (w *world) execute(p protocol, i int) bool {
	a := &w.agents[i]
	order := a.inbox.Last.Orders[a.next]
	progress := false
	for n := range w.clusters {
		c := &w.clusters[n]
		if !slices.Contains(order.Clusters, c.name) || slices.Contains(a.done, c.name) || !c.can(order.Action, p.staleLeases) {
			continue
		}
		if wrong := c.check(order.Action); wrong != "" {
			w.wrong = wrong
		}
		c.apply(p, order.Action)
		a.done = append(a.done, c.name)
		progress = true
	}
	slices.Sort(a.done)
	switch order.Action {
	case GrantRegistration:
		w.granted = true
	case RevokeRegistration:
		w.granted = false
	}
	switch finished := len(a.done) == len(order.Clusters); {
	case finished && a.next == len(a.inbox.Last.Orders)-1:
		a.next++
		w.answer(i, true)
		a.done = nil
	case finished:
		a.next++
		a.done = nil
	case progress:
		w.answer(i, false)
	default:
		return false
	}
	return true
}

func (w *world) answer(i int, finished bool) {
	a := &w.agents[i]
	done := a.done
	if finished {
		done = nil
		for _, o := range a.inbox.Last.Orders {
			done = append(done, o.Clusters...)
		}
		slices.Sort(done)
		done = slices.Compact(done)
	}
	r := Report{Party: parties[i], Stage: a.inbox.Last.Stage, Attempt: a.inbox.Last.Attempt, Finished: finished, Done: slices.Clone(done)}
	a.inbox = a.inbox.Answer(r)
	w.toMgr[i] = append(w.toMgr[i], r)
}

// can reports whether an action can be done for a cluster now.
func (c *klusterlet) can(a Action, stale bool) bool {
	switch a {
	case AwaitRegistration:
		return c.at == atTarget
	case AwaitReturn:
		return c.at == atSource || stale
	}
	return true
}

// check: the objects of a hub are deleted only when the cluster is at the other one.
func (c *klusterlet) check(a Action) string {
	switch {
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
// the first of the others that accepts it, or that does not know it and approves it. At the
// target, the import controller configures it. An agent with one kubeconfig stays at its hub,
// also at one that does not accept it any more.
func (c *klusterlet) change(granted bool) bool {
	const source, target = 0, 1
	sourceTakes := c.source && c.object[source] && c.accepted[source]
	targetTakes := c.bootstrap && (c.object[target] && c.accepted[target] || !c.object[target] && granted)
	was := *c
	switch c.at {
	case atSource:
		if !sourceTakes {
			c.at = nowhere
		}
	case atTarget:
		switch accepted := c.object[target] && c.accepted[target]; {
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
		case sourceTakes:
			c.at = atSource
		case targetTakes && c.able == registers:
			c.at = atTarget
			c.object[target], c.accepted[target] = true, true
		case targetTakes && c.able == isRefused:
			c.at = stuck
		}
	}
	return *c != was
}

// check returns the invariant that a world breaks.
func (w *world) check() string {
	for _, c := range w.clusters {
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
	for i, c := range w.clusters {
		hub := atSource
		if w.state.Clusters[i].State == Moved {
			hub = atTarget
		}
		other := 1 - hub
		switch {
		case w.state.Phase == api.PhaseCompleted && w.state.Clusters[i].State != Moved && w.state.Clusters[i].State != Restored,
			w.state.Phase == api.PhaseFailed && w.state.RollbackStage != "" && w.state.Clusters[i].State != Restored:
			return fmt.Sprintf("%s is %s in phase %s", c.name, w.state.Clusters[i].State, w.state.Phase)
		case c.at != hub:
			return fmt.Sprintf("%s is %s, and its agent is at %d", c.name, w.state.Clusters[i].State, c.at)
		case c.object[other]:
			return fmt.Sprintf("%s is %s, and the other hub still has it", c.name, w.state.Clusters[i].State)
		case !c.finished && c.bootstrap:
			return c.name + " still has the bootstrap kubeconfig of the target"
		}
	}
	if w.granted {
		return "the target still approves registrations"
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
