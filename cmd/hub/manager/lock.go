package manager

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// locks serialize the changes of one migration: messages arrive while it is reconciled.
type locks struct {
	mutex sync.Mutex
	held  map[types.NamespacedName]*lock
}

type lock struct {
	sync.Mutex
	users int
}

// acquire locks a migration and returns the function that unlocks it.
func (l *locks) acquire(key types.NamespacedName) (unlock func()) {
	l.mutex.Lock()
	if l.held == nil {
		l.held = map[types.NamespacedName]*lock{}
	}
	one, ok := l.held[key]
	if !ok {
		one = &lock{}
		l.held[key] = one
	}
	one.users++
	l.mutex.Unlock()
	one.Lock()
	return func() {
		one.Unlock()
		l.mutex.Lock()
		defer l.mutex.Unlock()
		if one.users--; one.users == 0 {
			delete(l.held, key)
		}
	}
}
