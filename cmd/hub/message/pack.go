package message

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

const (
	// headerReserve is an upper bound for the attributes of a message, with the longest names.
	headerReserve = 4 << 10
	// bundleReserve is for the fields of a bundle around its clusters.
	bundleReserve = 256
	// clusterReserve is for the fields of a cluster around its objects.
	clusterReserve = 256
	// roomBytes bounds the clusters and objects of a bundle.
	roomBytes = MaxBytes - headerReserve - bundleReserve - sealedOverhead
)

// Resources has everything that moves with one cluster.
type Resources struct {
	Cluster string
	Objects []json.RawMessage
	// SourceKubeconfig is the bootstrap kubeconfig of the source hub. The cluster needs it to return from the target
	// hub.
	SourceKubeconfig []byte
}

// TooLargeError means that an object does not fit into a message.
type TooLargeError struct {
	Cluster string
	Index   int
	Bytes   int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("object %d of cluster %s has %d bytes, and a message at most %d", e.Index, e.Cluster, e.Bytes, roomBytes)
}

// Pack distributes the objects of clusters over as few bundles as their order allows. Each sealed bundle has at most
// [MaxBytes]. A cluster that does not fit is split between objects. Each bundle has the number of all clusters.
func Pack(total int, list []Resources) ([]ResourceBundle, error) {
	p := packer{total: total}
	for _, r := range list {
		r, err := canonical(r)
		if err != nil {
			return nil, err
		}
		if err := p.add(r, 0, len(r.Objects)); err != nil {
			return nil, err
		}
	}
	return p.bundles, nil
}

// PackMissing packs only what is missing.
func PackMissing(total int, list []Resources, gaps []Gap) ([]ResourceBundle, error) {
	byName := make(map[string]Resources, len(list))
	for _, r := range list {
		byName[r.Cluster] = r
	}
	p := packer{total: total}
	for _, g := range gaps {
		r, ok := byName[g.ClusterName]
		if !ok {
			return nil, fmt.Errorf("pack what is missing: cluster %q is not of this migration", g.ClusterName)
		}
		r, err := canonical(r)
		if err != nil {
			return nil, err
		}
		first, end := g.First, g.First+g.Objects
		if g.Objects == 0 {
			first, end = 0, len(r.Objects)
		}
		if first < 0 || end > len(r.Objects) || first > end {
			return nil, fmt.Errorf("pack what is missing: cluster %s has no objects %d to %d", r.Cluster, first, end)
		}
		if err := p.add(r, first, end); err != nil {
			return nil, err
		}
	}
	return p.bundles, nil
}

// canonical encodes each object as within a bundle, so that sizes and hashes match what arrives.
func canonical(r Resources) (Resources, error) {
	objects := make([]json.RawMessage, len(r.Objects))
	for i, o := range r.Objects {
		text, err := json.Marshal(o)
		if err != nil {
			return Resources{}, fmt.Errorf("pack object %d of cluster %s: %w", i, r.Cluster, err)
		}
		objects[i] = text
	}
	r.Objects = objects
	return r, nil
}

type packer struct {
	total   int
	bundles []ResourceBundle
	used    int // bytes of the last bundle
}

func (p *packer) add(r Resources, first, end int) error {
	hash := r.hash()
	start := func(at int) {
		overhead := len(r.Cluster) + clusterReserve
		if len(p.bundles) == 0 || p.used+overhead > roomBytes {
			p.bundles = append(p.bundles, ResourceBundle{TotalClusters: p.total})
			p.used = 0
		}
		b := &p.bundles[len(p.bundles)-1]
		b.MigrationClusterResources = append(b.MigrationClusterResources, ClusterResources{
			ClusterName: r.Cluster, ResourceList: []json.RawMessage{}, First: at, Objects: len(r.Objects), Hash: hash,
		})
		p.used += overhead
	}
	start(first)
	for i := first; i < end; i++ {
		size := len(r.Objects[i]) + 1
		if i == 0 {
			size += base64.StdEncoding.EncodedLen(len(r.SourceKubeconfig))
		}
		if size+len(r.Cluster)+clusterReserve > roomBytes {
			return &TooLargeError{Cluster: r.Cluster, Index: i, Bytes: len(r.Objects[i])}
		}
		if p.used+size > roomBytes {
			p.used = roomBytes // full
			start(i)
		}
		b := &p.bundles[len(p.bundles)-1]
		c := &b.MigrationClusterResources[len(b.MigrationClusterResources)-1]
		c.ResourceList = append(c.ResourceList, r.Objects[i])
		if i == 0 {
			c.SourceKubeconfig = r.SourceKubeconfig
		}
		p.used += size
	}
	return nil
}

// hash returns the hash of all objects in their order, and of the kubeconfig.
func (r Resources) hash() string {
	h := sha256.New()
	add := func(data []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(data))))
		h.Write(data)
	}
	for _, o := range r.Objects {
		add(o)
	}
	add(r.SourceKubeconfig)
	return base64.RawStdEncoding.EncodeToString(h.Sum(nil))
}
