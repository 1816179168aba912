package lock

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Keys are locks, one for each key that is in use. The zero value is ready.
type Keys struct {
	mutex sync.Mutex
	held  map[types.NamespacedName]*one
}

type one struct {
	sync.Mutex
	users int
}

// Acquire locks a key, and returns the function that unlocks it.
func (l *Keys) Acquire(key types.NamespacedName) (unlock func()) {
	l.mutex.Lock()
	if l.held == nil {
		l.held = map[types.NamespacedName]*one{}
	}
	held, ok := l.held[key]
	if !ok {
		held = &one{}
		l.held[key] = held
	}
	held.users++
	l.mutex.Unlock()
	held.Lock()
	return func() {
		held.Unlock()
		l.mutex.Lock()
		defer l.mutex.Unlock()
		if held.users--; held.users == 0 {
			delete(l.held, key)
		}
	}
}
