package revision

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/revision/decision"
)

// VersionCount is how many objects are stored at a version, in one form.
type VersionCount struct {
	Version string `json:"version"`
	Form    string `json:"form"`
	Count   int64  `json:"count"`
}

// Inventory says at which versions a whole cluster stores objects.
type Inventory struct {
	// VersionCounts counts every stored object, also those without a reference.
	VersionCounts []VersionCount `json:"versionCounts"`
	// Droppable are the versions of the family at which nothing is stored, without those that
	// upgrades aim at.
	Droppable []string `json:"droppableVersions"`
	// InUse says what still uses the others, oldest version first.
	InUse []VersionUse `json:"versionsInUse,omitempty"`
	// UnknownStorageVersions are as the function of that name returns them.
	UnknownStorageVersions []string `json:"unknownStorageVersions,omitempty"`
}

// UnknownStorageVersions are the versions that CRDs store and that a family does not know: the
// software that it belongs to is newer than this release. Objects are upgraded to the
// newest version that they can be converted to, if that software still serves it.
func UnknownStorageVersions(d decision.Description, crds map[schema.GroupResource]decision.CRD) []string {
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
	// UsedBy names the first objects that use it.
	UsedBy []string `json:"usedBy"`
	Count  int64    `json:"count"`
}

// maxUsers bounds how many objects a version in use names.
const maxUsers = 5

// Inventory reads all stored objects of the cluster, and the CRDs' storedVersions. A
// list that the API server refuses is an error: a version that could not be searched for is not
// droppable.
func (u *Upgrader) Inventory(ctx context.Context) (Inventory, error) {
	return u.InventoryEach(ctx, nil)
}

// InventoryEach is an inventory that is a plan of the whole cluster as well: each, if given,
// is called with every item, so that both come from one scan. Its first error ends the
// scan.
func (u *Upgrader) InventoryEach(ctx context.Context, each func(decision.Item) error) (Inventory, error) {
	b := newInventoryBuilder(u.family.Describe().Versions)
	for n, err := range u.snapshots(ctx, Scope{}) {
		if err != nil {
			return Inventory{}, err
		}
		for _, i := range n.items {
			b.item(i)
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
	b.crds(crds)
	inventory := b.end()
	inventory.UnknownStorageVersions = UnknownStorageVersions(u.family.Describe(), crds)
	return inventory, nil
}

// inventoryBuilder counts stored objects by version.
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
func (b *inventoryBuilder) item(i decision.Item) {
	name := "controllerrevision " + i.Namespace + "/" + i.Name
	if i.Version == "" {
		why := "which can't be read"
		switch {
		case i.Reason == decision.ReasonUnconfirmed, i.Reason == decision.ReasonChanged:
			why = "which was not read"
		case i.UID == "":
			return // no revision has the name
		}
		for _, v := range b.versions {
			b.use(v, name+" ("+why+")")
		}
		return
	}
	b.counts[VersionCount{Version: i.Version, Form: i.Form}]++
	b.upgradeTargets[i.Target] = true
	b.use(i.Version, name)
}

// crds adds CRDs in the order of their names, so that the message of a condition changes only
// with its facts.
func (b *inventoryBuilder) crds(all map[schema.GroupResource]decision.CRD) {
	byName := func(one, other schema.GroupResource) int { return strings.Compare(one.String(), other.String()) }
	for _, r := range slices.SortedFunc(maps.Keys(all), byName) {
		d := all[r]
		if d.StorageVersion != "" {
			b.targets[d.StorageVersion] = true
		}
		for _, v := range d.StoredVersions {
			b.use(v, fmt.Sprintf("status.storedVersions of customresourcedefinition %s: see godwit crd run", r))
		}
	}
}

func (b *inventoryBuilder) use(version, by string) {
	use := b.inUse[version]
	if use == nil {
		use = &VersionUse{Version: version}
		b.inUse[version] = use
	}
	if use.Count++; len(use.UsedBy) < maxUsers {
		use.UsedBy = append(use.UsedBy, by)
	}
}

func (b *inventoryBuilder) end() Inventory {
	inventory := Inventory{Droppable: []string{}}
	for key, n := range b.counts {
		key.Count = n
		inventory.VersionCounts = append(inventory.VersionCounts, key)
	}
	slices.SortFunc(inventory.VersionCounts, func(one, other VersionCount) int {
		return cmp.Or(strings.Compare(one.Version, other.Version), strings.Compare(one.Form, other.Form))
	})
	for _, v := range b.versions {
		switch use := b.inUse[v]; {
		case b.targets[v], use == nil && b.upgradeTargets[v]:
		case use == nil:
			inventory.Droppable = append(inventory.Droppable, v)
		default:
			inventory.InUse = append(inventory.InUse, *use)
			delete(b.inUse, v)
		}
	}
	for _, v := range slices.Sorted(maps.Keys(b.inUse)) {
		if !b.targets[v] && !slices.Contains(b.versions, v) {
			inventory.InUse = append(inventory.InUse, *b.inUse[v])
		}
	}
	return inventory
}

// Plan yields what is to be done about every revision in scope, namespace by
// namespace. Nothing is written.
func (u *Upgrader) Plan(ctx context.Context, s Scope) iter.Seq2[decision.Item, error] {
	return func(yield func(decision.Item, error) bool) {
		for n, err := range u.snapshots(ctx, s) {
			if err != nil {
				yield(decision.Item{}, err)
				return
			}
			for _, i := range n.items {
				if !yield(i, nil) {
					return
				}
			}
		}
	}
}
