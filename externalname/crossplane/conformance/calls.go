package conformance

import (
	"fmt"
	"slices"
	"sync"
)

// calls counts the calls of the provider, and injects the faults of a check.
type calls struct {
	mu     sync.Mutex
	counts map[Operation]int
	hook   func(Operation) Fault
}

func (c *calls) decide(op Operation) Fault {
	c.mu.Lock()
	c.counts[op]++
	hook := c.hook
	c.mu.Unlock()
	if hook == nil {
		return Fault{}
	}
	return hook(op)
}

func (c *calls) intercept(hook func(Operation) Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hook = hook
}

// once injects a fault into the first call of an operation.
func (c *calls) once(op Operation, fault Fault) {
	done := false
	var mu sync.Mutex
	c.intercept(func(this Operation) Fault {
		mu.Lock()
		defer mu.Unlock()
		if this != op || done {
			return Fault{}
		}
		done = true
		return fault
	})
}

// always injects a fault into every call of some operations.
func (c *calls) always(fault Fault, ops ...Operation) {
	c.intercept(func(this Operation) Fault {
		if slices.Contains(ops, this) {
			return fault
		}
		return Fault{}
	})
}

// count counts the calls of some operations, or of all.
func (c *calls) count(ops ...Operation) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := 0
	for op, n := range c.counts {
		if len(ops) == 0 || slices.Contains(ops, op) {
			sum += n
		}
	}
	return sum
}

func (c *calls) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.counts)
}

// checkNone returns an error if the provider has made any of these calls.
func (c *calls) checkNone(ops ...Operation) error {
	if n := c.count(ops...); n > 0 {
		return fmt.Errorf("the provider has called the external system: %s", c)
	}
	return nil
}
