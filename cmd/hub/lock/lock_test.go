package lock

import (
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestAcquire: one goroutine at a time has a key, another key is free meanwhile, and a key that is not in use takes no memory.
func TestAcquire(t *testing.T) {
	var keys Keys
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	count, wait := 0, sync.WaitGroup{}
	for range 8 {
		wait.Go(func() {
			for range 100 {
				unlock := keys.Acquire(a)
				count++
				keys.Acquire(b)()
				unlock()
			}
		})
	}
	wait.Wait()
	if count != 800 || len(keys.held) > 0 {
		t.Errorf("%d of 800 were counted, and %d keys are held in the end", count, len(keys.held))
	}
}
