package agent

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// Agent is the agent of one hub.
type Agent struct {
	Options
	store store

	mutex      sync.Mutex
	migrations map[string]*migration
	held       held
	// newer has, by UID, the migrations whose commands a newer release stored. It does not change while the agent runs.
	newer map[string]error
}

// New returns an agent, which does nothing until [Agent.Run].
func New(o Options) *Agent {
	return &Agent{
		Options: o.withDefaults(), store: store{o.Client, o.Namespace, o.Only},
		migrations: map[string]*migration{},
	}
}

// migration returns a migration. It creates one if the agent has no command of it.
func (a *Agent) migration(uid string) *migration {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	m := a.migrations[uid]
	if m == nil {
		m = &migration{uid: uid, arrived: make(chan struct{}, 1)}
		a.migrations[uid] = m
	}
	return m
}

// find returns a migration of which the agent has a command, or nil.
func (a *Agent) find(uid string) *migration {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.migrations[uid]
}

// migration is a migration in which the hub is the source or the target.
type migration struct {
	uid string

	mutex  sync.Mutex
	stored stored
	// progress is the progress of the running execution.
	progress progress
	// arrivals is nil unless an execution receives resources.
	arrivals *arrivals
	// takesOver means that the running execution takes over a newer command, for which arrived ends its pause.
	takesOver bool
	arrived   chan struct{}
	// resumed means that the agent has restarted since the command was stored.
	resumed bool
	// batch numbers what the agent sends.
	batch int

	// cancel and done belong to the execution that runs or ran last. Only the receiver of commands uses them.
	cancel context.CancelFunc
	done   chan struct{}
}

// progress is a report, and fields that hub.Report does not have.
type progress struct {
	report    hub.Report
	bootstrap message.Sealed
	missing   []message.Gap
}

// get returns the stored command.
func (m *migration) get() stored {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.stored
}

// update changes the stored command with edit. It stores nothing if edit returns false.
func (a *Agent) update(ctx context.Context, m *migration, edit func(*stored) bool) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	next := m.stored
	if !edit(&next) {
		return nil
	}
	version, err := a.store.save(ctx, m.uid, next)
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		// An answer of the API server was lost, or a user has changed the Secret. The agent's own state is newer than
		// both, so it writes again.
		present := &corev1.Secret{}
		if got := a.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: secretPrefix + m.uid}, present); client.IgnoreNotFound(got) == nil {
			m.stored.version = present.ResourceVersion
		}
		return err
	case err != nil:
		return err
	}
	next.version = version
	m.stored = next
	return nil
}

// takeOver says whether the running execution takes over newer commands. It returns a function for the end of the
// execution.
func (m *migration) takeOver(takesOver bool) (end func()) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.takesOver = takesOver
	return func() { m.takeOver(false) }
}

// notify makes the running execution take over the stored command. It returns false if none does.
func (m *migration) notify() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.takesOver {
		select {
		case m.arrived <- struct{}{}:
		default:
		}
	}
	return m.takesOver
}

// nextBatch returns the number of the next message.
func (m *migration) nextBatch() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.batch++
	return m.batch
}

// stop ends the running execution and waits for its end.
func (m *migration) stop() {
	if m.cancel != nil {
		m.cancel()
		<-m.done
	}
}

// busy reports whether an execution runs.
func (m *migration) busy() bool {
	if m.done == nil {
		return false
	}
	select {
	case <-m.done:
		return false
	default:
		return true
	}
}

// start starts an execution. No other execution may run.
func (m *migration) start(ctx context.Context, group *sync.WaitGroup, execute func(context.Context)) {
	ctx, m.cancel = context.WithCancel(ctx)
	done := make(chan struct{})
	m.done = done
	group.Go(func() {
		defer close(done)
		execute(ctx)
	})
}
