package message

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Reassembler joins the objects of clusters, which may arrive in any order and more than once. It does no I/O, and
// needs a lock of its owner.
type Reassembler struct {
	wanted map[string]*parts
	limit  int
	held   int
}

// parts of one cluster.
type parts struct {
	hash    string
	objects []json.RawMessage // nil where missing
	missing int
	// kubeconfig came with the first object.
	kubeconfig []byte
	done       bool
}

// maxObjects bounds the objects of a cluster, so that a bundle can't ask for memory by a
// number alone.
const maxObjects = 10_000

// slotBytes is the memory of an object that has not arrived: a slice header.
const slotBytes = 24

// NewReassembler returns a reassembler for clusters. It holds at most limit bytes of incomplete clusters.
func NewReassembler(clusters []string, limit int) *Reassembler {
	r := &Reassembler{wanted: make(map[string]*parts, len(clusters)), limit: limit}
	for _, name := range clusters {
		r.wanted[name] = &parts{}
	}
	return r
}

// ErrFull means that incomplete clusters would exceed the memory limit. The refused part is reported as missing and
// sent again.
var ErrFull = errors.New("too much data of incomplete clusters")

// Add adds a bundle, and returns the clusters that it completes. It adds the remaining parts even if it refuses one.
func (r *Reassembler) Add(b ResourceBundle) ([]Resources, error) {
	var complete []Resources
	var failed error
	for _, c := range b.MigrationClusterResources {
		got, err := r.add(c)
		failed = errors.Join(failed, err)
		if got != nil {
			complete = append(complete, *got)
		}
	}
	return complete, failed
}

func (r *Reassembler) add(c ClusterResources) (*Resources, error) {
	p, ok := r.wanted[c.ClusterName]
	switch {
	case !ok:
		return nil, fmt.Errorf("cluster %q is not of this migration", c.ClusterName)
	case p.done:
		return nil, nil
	case c.Objects < 0 || c.Objects > maxObjects || c.First < 0 || c.First > c.Objects-len(c.ResourceList):
		return nil, fmt.Errorf("cluster %s: %d objects from %d on, of %d", c.ClusterName, len(c.ResourceList), c.First, c.Objects)
	case p.hash != c.Hash || p.objects == nil:
		// The source has collected again. Parts of the earlier collection are useless.
		r.drop(p)
		*p = parts{}
		if r.held+c.Objects*slotBytes > r.limit {
			return nil, fmt.Errorf("cluster %s: %w", c.ClusterName, ErrFull)
		}
		r.held += c.Objects * slotBytes
		*p = parts{hash: c.Hash, objects: make([]json.RawMessage, c.Objects), missing: c.Objects}
	case len(p.objects) != c.Objects:
		return nil, fmt.Errorf("cluster %s has %d objects, and %d with the same hash", c.ClusterName, len(p.objects), c.Objects)
	}
	for i, o := range c.ResourceList {
		at := c.First + i
		if p.objects[at] != nil {
			continue
		}
		if len(o) == 0 {
			return nil, fmt.Errorf("cluster %s: object %d is empty", c.ClusterName, at)
		}
		var kubeconfig []byte
		if at == 0 {
			kubeconfig = c.SourceKubeconfig
		}
		if r.held+len(o)+len(kubeconfig) > r.limit {
			return nil, fmt.Errorf("cluster %s: %w", c.ClusterName, ErrFull)
		}
		p.objects[at] = slices.Clone(o)
		p.missing--
		r.held += len(o) + len(kubeconfig)
		if at == 0 {
			p.kubeconfig = slices.Clone(kubeconfig)
		}
	}
	if p.missing > 0 {
		return nil, nil
	}
	all := Resources{Cluster: c.ClusterName, Objects: p.objects, SourceKubeconfig: p.kubeconfig}
	r.drop(p)
	if all.hash() != c.Hash {
		*p = parts{}
		return nil, fmt.Errorf("cluster %s: the objects that arrived have another hash than those that were sent", c.ClusterName)
	}
	*p = parts{done: true}
	return &all, nil
}

func (r *Reassembler) drop(p *parts) {
	r.held -= len(p.objects)*slotBytes + len(p.kubeconfig)
	for _, o := range p.objects {
		r.held -= len(o)
	}
}

// Held returns the memory of incomplete clusters, in bytes.
func (r *Reassembler) Held() int { return r.held }

// Missing returns the objects that have not arrived, sorted by cluster.
func (r *Reassembler) Missing() []Gap {
	var gaps []Gap
	for name, p := range r.wanted {
		switch {
		case p.done:
		case p.objects == nil:
			gaps = append(gaps, Gap{ClusterName: name})
		default:
			gaps = append(gaps, p.gaps(name)...)
		}
	}
	slices.SortFunc(gaps, func(a, b Gap) int {
		if a.ClusterName != b.ClusterName {
			if a.ClusterName < b.ClusterName {
				return -1
			}
			return 1
		}
		return a.First - b.First
	})
	return gaps
}

func (p *parts) gaps(name string) []Gap {
	var gaps []Gap
	for i, o := range p.objects {
		if o != nil {
			continue
		}
		if n := len(gaps); n > 0 && gaps[n-1].First+gaps[n-1].Objects == i {
			gaps[n-1].Objects++
			continue
		}
		gaps = append(gaps, Gap{ClusterName: name, First: i, Objects: 1})
	}
	return gaps
}
