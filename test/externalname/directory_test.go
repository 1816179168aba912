package externalname_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// entry is what the external system stores.
type entry struct {
	// ID is made by the directory: a GUID, or Parent/Name in lower case for the members of
	// a group.
	ID     string
	Parent string
	Name   string
	Mail   string
	Title  string
	// Secret can be compared, and must not be printed.
	Secret string
	// Mark is the proof of who created the entry.
	Mark string
	// State is empty for an entry that can be used.
	State crossplane.State
}

// directory is an external system. Its methods return the errors of package crossplane.
type directory interface {
	// Add creates an entry and returns it with its ID.
	Add(ctx context.Context, e entry) (entry, error)
	Read(ctx context.Context, id string) (entry, error)
	// Write replaces an entry. The ID of a member changes with its name.
	Write(ctx context.Context, id string, e entry) (entry, error)
	Remove(ctx context.Context, id string) error
	// Search returns the entries that have the fields of the filter that are not empty.
	Search(ctx context.Context, filter entry) ([]entry, error)
}

// store is a directory of which a test sees and changes everything.
type store interface {
	directory
	all() []entry
	// change lets another client change an entry; false removes it.
	change(id string, change func(*entry) bool)
}

// memory is a directory in this process.
type memory struct {
	mu      sync.Mutex
	entries map[string]entry
	made    int
	// number keeps the IDs of one directory from being those of another one.
	number int64
	// twins allows entries with equal names.
	twins bool
	// slow entries are Deleting after Remove, until finish removes them.
	slow bool
}

func newMemory() *memory { return &memory{entries: map[string]entry{}} }

func (m *memory) Add(_ context.Context, e entry) (entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Parent != "" {
		if _, ok := m.entries[e.Parent]; !ok {
			return entry{}, fmt.Errorf("group %s: %w", e.Parent, crossplane.ErrParentNotFound)
		}
	}
	for _, other := range m.entries {
		if !m.twins && other.Parent == e.Parent && strings.EqualFold(other.Name, e.Name) {
			return entry{}, fmt.Errorf("entry %s: %w", e.Name, crossplane.ErrAlreadyExists)
		}
	}
	m.made++
	if e.ID = fmt.Sprintf("%08d-0000-4000-8000-%012d", m.number, m.made); e.Parent != "" {
		e.ID = memberID(e)
	}
	m.entries[e.ID] = e
	return e, nil
}

func memberID(e entry) string { return e.Parent + "/" + strings.ToLower(e.Name) }

func (m *memory) Read(_ context.Context, id string) (entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if group, _, member := strings.Cut(id, "/"); member {
		if _, ok := m.entries[group]; !ok {
			return entry{}, fmt.Errorf("group %s: %w", group, crossplane.ErrParentNotFound)
		}
	}
	e, ok := m.entries[id]
	if !ok {
		return entry{}, fmt.Errorf("entry %s: %w", id, crossplane.ErrNotFound)
	}
	return e, nil
}

func (m *memory) Write(_ context.Context, id string, e entry) (entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.entries[id]
	if !ok {
		return entry{}, fmt.Errorf("entry %s: %w", id, crossplane.ErrNotFound)
	}
	delete(m.entries, id)
	e.ID, e.Mark, e.State = id, old.Mark, old.State
	if e.Parent != "" {
		e.ID = memberID(e)
	}
	m.entries[e.ID] = e
	return e, nil
}

func (m *memory) Remove(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[id]
	if !ok {
		return fmt.Errorf("entry %s: %w", id, crossplane.ErrNotFound)
	}
	if m.slow {
		e.State = crossplane.Deleting
		m.entries[id] = e
		return nil
	}
	delete(m.entries, id)
	return nil
}

func (m *memory) Search(_ context.Context, filter entry) ([]entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []entry
	for _, e := range m.entries {
		if e.Parent == filter.Parent && matches(filter.Name, e.Name) && matches(filter.Mail, e.Mail) && matches(filter.Mark, e.Mark) {
			found = append(found, e)
		}
	}
	return found, nil
}

func matches(filter, value string) bool { return filter == "" || strings.EqualFold(filter, value) }

// setSlow makes deletions slow, or finishes them.
func (m *memory) setSlow(slow bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.slow = slow; slow {
		return
	}
	for id, e := range m.entries {
		if e.State == crossplane.Deleting {
			delete(m.entries, id)
		}
	}
}

// all returns a copy of the entries.
func (m *memory) all() []entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []entry
	for _, e := range m.entries {
		list = append(list, e)
	}
	return list
}

func (m *memory) change(id string, change func(*entry) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[id]
	if change(&e) {
		m.entries[id] = e
	} else {
		delete(m.entries, id)
	}
}

// wire is the way to a directory: it counts calls, and a fault may befall them.
type wire struct {
	to directory

	mu    sync.Mutex
	calls map[string]int
	// fault may answer a call in place of the directory, or after it.
	fault func(ctx context.Context, call string, send func() error) error
}

func newWire(to directory) *wire { return &wire{to: to, calls: map[string]int{}} }

func (w *wire) do(ctx context.Context, call string, send func() error) error {
	w.mu.Lock()
	w.calls[call]++
	fault := w.fault
	w.mu.Unlock()
	if fault == nil {
		return send()
	}
	return fault(ctx, call, send)
}

// break sets the fault; nil ends it.
func (w *wire) set(fault func(ctx context.Context, call string, send func() error) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = fault
}

func (w *wire) count(calls ...string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := 0
	for call, n := range w.calls {
		for _, wanted := range calls {
			if call == wanted {
				sum += n
			}
		}
		if len(calls) == 0 {
			sum += n
		}
	}
	return sum
}

func (w *wire) Add(ctx context.Context, e entry) (made entry, err error) {
	err = w.do(ctx, "Add", func() error { made, err = w.to.Add(ctx, e); return err })
	return made, err
}

func (w *wire) Read(ctx context.Context, id string) (e entry, err error) {
	err = w.do(ctx, "Read", func() error { e, err = w.to.Read(ctx, id); return err })
	return e, err
}

func (w *wire) Write(ctx context.Context, id string, e entry) (written entry, err error) {
	err = w.do(ctx, "Write", func() error { written, err = w.to.Write(ctx, id, e); return err })
	return written, err
}

func (w *wire) Remove(ctx context.Context, id string) error {
	return w.do(ctx, "Remove", func() error { return w.to.Remove(ctx, id) })
}

func (w *wire) Search(ctx context.Context, filter entry) (found []entry, err error) {
	err = w.do(ctx, "Search", func() error { found, err = w.to.Search(ctx, filter); return err })
	return found, err
}
