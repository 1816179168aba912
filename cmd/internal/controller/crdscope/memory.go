package crdscope

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// memory has the results of scans, by the name of the CRD. The zero value is empty.
type memory struct {
	mu      sync.Mutex
	clean   map[string]generation // CRDs whose managedFields are clean
	unknown map[string]int        // scans in a row that did not list the objects
}

// generation is one generation of one CRD.
type generation struct {
	uid    types.UID
	number int64
}

// reportAfter is the number of consecutive failed scans, within 15 s, after which a CRDMigration reports why the
// objects are not listed. An API server that starts or is under load lists them earlier.
const reportAfter = 5

// isClean reports whether a scan found a CRD clean.
func (m *memory) isClean(crd *metav1.PartialObjectMetadata) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clean[crd.Name] == generation{crd.UID, crd.Generation}
}

// recordClean records a CRD that a scan has found clean.
func (m *memory) recordClean(p decision.Plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.unknown, p.Name)
	if p.State != decision.Clean || p.ManagedFields != decision.ManagedFieldsClean {
		return
	}
	if m.clean == nil {
		m.clean = map[string]generation{}
	}
	m.clean[p.Name] = generation{p.UID, p.Generation}
}

// recordUnlisted records a scan that could not list the objects. It returns true if a CRDMigration must be created: it
// shows the reason and the remedy, and its passes retry.
func (m *memory) recordUnlisted(p decision.Plan) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unknown == nil {
		m.unknown = map[string]int{}
	}
	if m.unknown[p.Name]++; m.unknown[p.Name] < reportAfter {
		return false
	}
	delete(m.unknown, p.Name)
	return true
}

func (m *memory) drop(crd string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.clean, crd)
	delete(m.unknown, crd)
}
