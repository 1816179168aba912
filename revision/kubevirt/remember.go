package kubevirt

import "sync"

// Each VirtualMachine has revisions of its own, and most of them hold the same bytes: copies of
// the few instance types and preferences of a cluster. What equal bytes say is found once.
var (
	parsedData    memory[parsed]
	checkedData   memory[finding]
	convertedData memory[conversion]
)

const (
	// maxRemembered results of each function. Who has more kinds of data than that loses the
	// speed, not the result.
	maxRemembered = 256
	// maxRememberedBytes of data that are worth remembering; instance types have some hundred.
	maxRememberedBytes = 4 << 10
)

// memory remembers the results of a function of data alone. Callers share what it returns, and
// don't change it.
type memory[V any] struct {
	mu     sync.Mutex
	values map[string]V
}

// of is the result for data; find computes it the first time. No data are not remembered.
func (m *memory[V]) of(data []byte, find func() V) V {
	if len(data) == 0 || len(data) > maxRememberedBytes {
		return find()
	}
	m.mu.Lock()
	value, known := m.values[string(data)]
	m.mu.Unlock()
	if known {
		return value
	}
	value = find()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil || len(m.values) >= maxRemembered {
		m.values = map[string]V{}
	}
	m.values[string(data)] = value
	return value
}

// parsed is what parsing gave: the object that data hold, or why they hold none.
type parsed struct {
	object map[string]any
	err    error
}

// conversion is what an object became, and what was found of it then.
type conversion struct {
	object map[string]any
	finding
}
