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
	// newer are the migrations whose commands a newer release has stored. It does not change while the
	// agent runs.
	newer map[string]error
}

// New makes an agent, which does nothing until it runs.
func New(o Options) *Agent {
	return &Agent{
		Options: o.withDefaults(), store: store{o.Client, o.Namespace},
		migrations: map[string]*migration{},
	}
}

// migration returns one, also if the agent has no command of it.
func (a *Agent) migration(uid string) *migration {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	m := a.migrations[uid]
	if m == nil {
		m = &migration{uid: uid}
		a.migrations[uid] = m
	}
	return m
}

// known returns a migration of which the agent has a command, or nil.
func (a *Agent) known(uid string) *migration {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.migrations[uid]
}

// migration is one in which the hub has a part.
type migration struct {
	uid string

	mutex  sync.Mutex
	stored stored
	// progress is what the execution has come to that runs.
	progress progress
	// arrivals is there while an execution takes resources.
	arrivals *arrivals
	// resumed means that the agent has restarted since the command was stored.
	resumed bool
	// batch numbers what the agent sends.
	batch int

	// cancel and done are of the execution that runs or ran last. The receiver of commands
	// alone uses them.
	cancel context.CancelFunc
	done   chan struct{}
}

// progress is a report with what hub.Report does not have.
type progress struct {
	report    hub.Report
	bootstrap message.Sealed
	missing   []message.Gap
}

// get returns what is stored.
func (m *migration) get() stored {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.stored
}

// change stores what edit makes of the task, or nothing if edit returns false.
func (a *Agent) change(ctx context.Context, m *migration, edit func(*stored) bool) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	next := m.stored
	if !edit(&next) {
		return nil
	}
	version, err := a.store.save(ctx, m.uid, next)
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		// An answer of the API server was lost, or a user has changed the Secret. The agent knows
		// better than either, and writes again.
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

// nextBatch numbers a message.
func (m *migration) nextBatch() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.batch++
	return m.batch
}

// stop ends the execution that runs, and waits for its end.
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

// start runs an execution. None may run.
func (m *migration) start(ctx context.Context, group *sync.WaitGroup, execute func(context.Context)) {
	ctx, m.cancel = context.WithCancel(ctx)
	done := make(chan struct{})
	m.done = done
	group.Go(func() {
		defer close(done)
		execute(ctx)
	})
}
