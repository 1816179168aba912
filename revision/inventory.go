package revision

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// VersionCount is how many objects are stored at a version, in one form.
type VersionCount struct {
	Version string `json:"version"`
	Form    string `json:"form"`
	Count   int64  `json:"count"`
}

// Inventory is at which versions anything is left in a whole cluster.
type Inventory struct {
	// VersionCounts counts every stored object, also those without a reference.
	VersionCounts []VersionCount `json:"versionCounts"`
	// Droppable are the versions of the family at which nothing is left, but for
	// those that upgrades aim at.
	Droppable []string `json:"droppableVersions"`
	// InUse says of the others what holds them, oldest version first.
	InUse []VersionUse `json:"versionsInUse,omitempty"`
	// UnknownStorageVersions is as [Ahead] says.
	UnknownStorageVersions []string `json:"unknownStorageVersions,omitempty"`
}

// UnknownStorageVersions are the versions that CRDs store and that a family does not know: the
// software that it belongs to is newer than this release. Objects are upgraded to the
// newest version that they can be converted to, if that software still serves it.
func UnknownStorageVersions(d Description, crds map[schema.GroupResource]CRD) []string {
	found := map[string]bool{}
	for _, one := range crds {
		if one.Found && !slices.Contains(d.Versions, one.StorageVersion) {
			found[one.StorageVersion] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// VersionUse is a version that can't be dropped.
type VersionUse struct {
	Version string `json:"version"`
	// UsedBy names the first that hold it.
	UsedBy []string `json:"usedBy"`
	Count  int64    `json:"count"`
}

// maxUsers that a held version names.
const maxUsers = 5

// Inventory reads all stored objects of the cluster, and the CRDs' storedVersions. A
// list that the API server refuses is an error: a version that no client could look
// for is not droppable.
func (u *Upgrader) Inventory(ctx context.Context) (Inventory, error) {
	return u.InventoryEach(ctx, nil)
}

// InventoryEach is an inventory that is a plan of the whole cluster as well: each, if given,
// is called with every item, so that both come of one scan. Its first error ends the
// scan.
func (u *Upgrader) InventoryEach(ctx context.Context, each func(Item) error) (Inventory, error) {
	s := newInventoryBuilder(u.family.Describe().Versions)
	for n, err := range u.snapshots(ctx, Scope{}) {
		if err != nil {
			return Inventory{}, err
		}
		for _, i := range n.items {
			s.item(i)
			if each == nil {
				continue
			}
			if err := each(i); err != nil {
				return Inventory{}, err
			}
		}
	}
	crds, err := u.CRDs(ctx)
	if err != nil {
		return Inventory{}, err
	}
	s.crds(crds)
	inventory := s.end()
	inventory.UnknownStorageVersions = UnknownStorageVersions(u.family.Describe(), crds)
	return inventory, nil
}

// inventoryBuilder counts.
type inventoryBuilder struct {
	versions       []string
	counts         map[VersionCount]int64
	inUse          map[string]*VersionUse
	targets        map[string]bool // that CRDs store
	upgradeTargets map[string]bool // that upgrades aim at
}

func newInventoryBuilder(versions []string) *inventoryBuilder {
	return &inventoryBuilder{versions: versions, counts: map[VersionCount]int64{}, inUse: map[string]*VersionUse{}, targets: map[string]bool{}, upgradeTargets: map[string]bool{}}
}

// item counts a stored object. One that can't be read may be at any version.
func (s *inventoryBuilder) item(i Item) {
	name := "controllerrevision " + i.Namespace + "/" + i.Name
	if i.Version == "" {
		if i.UID == "" {
			return // nothing is stored there
		}
		for _, v := range s.versions {
			s.use(v, name+" (which can't be read)")
		}
		return
	}
	s.counts[VersionCount{Version: i.Version, Form: i.Form}]++
	s.upgradeTargets[i.Target] = true
	s.use(i.Version, name)
}

// crds are taken in order: what is said of them stands in a condition, which is
// to change when something else does.
func (s *inventoryBuilder) crds(all map[schema.GroupResource]CRD) {
	byName := func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }
	for _, r := range slices.SortedFunc(maps.Keys(all), byName) {
		d := all[r]
		if d.StorageVersion != "" {
			s.targets[d.StorageVersion] = true
		}
		for _, v := range d.StoredVersions {
			s.use(v, fmt.Sprintf("status.storedVersions of customresourcedefinition %s: see godwit crd run", r))
		}
	}
}

func (s *inventoryBuilder) use(version, by string) {
	h := s.inUse[version]
	if h == nil {
		h = &VersionUse{Version: version}
		s.inUse[version] = h
	}
	if h.Count++; len(h.UsedBy) < maxUsers {
		h.UsedBy = append(h.UsedBy, by)
	}
}

func (s *inventoryBuilder) end() Inventory {
	inventory := Inventory{Droppable: []string{}}
	for key, n := range s.counts {
		key.Count = n
		inventory.VersionCounts = append(inventory.VersionCounts, key)
	}
	slices.SortFunc(inventory.VersionCounts, func(a, b VersionCount) int {
		if by := strings.Compare(a.Version, b.Version); by != 0 {
			return by
		}
		return strings.Compare(a.Form, b.Form)
	})
	for _, v := range s.versions {
		switch h := s.inUse[v]; {
		case s.targets[v], h == nil && s.upgradeTargets[v]:
		case h == nil:
			inventory.Droppable = append(inventory.Droppable, v)
		default:
			inventory.InUse = append(inventory.InUse, *h)
			delete(s.inUse, v)
		}
	}
	for _, v := range slices.Sorted(maps.Keys(s.inUse)) {
		if !s.targets[v] && !slices.Contains(s.versions, v) {
			inventory.InUse = append(inventory.InUse, *s.inUse[v])
		}
	}
	return inventory
}
