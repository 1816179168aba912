package rescue

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
)

// Change is what a conversion does to one path of the objects.
type Change struct {
	// Path is as in spec.tls.issuer; [] stands for the items of a list.
	Path string `json:"path"`
	// Lost means that a value is removed or changed; otherwise a value is added.
	Lost bool `json:"lost"`
	// Objects is the number of objects with this change, and Example one of them, with its namespace.
	Objects int64  `json:"objects"`
	Example string `json:"example"`
}

// changes collects the changes of all objects.
type changes map[Change]*Change

// compare adds the differences between an object as it is stored and as a rewrite would store it.
func (c changes) compare(key string, before, after map[string]any) {
	found := map[Change]bool{}
	for _, field := range fields(before, after) {
		if field != "apiVersion" && field != "metadata" {
			differences(field, before[field], after[field], found)
		}
	}
	for one := range found {
		if c[one] == nil {
			c[one] = &Change{Path: one.Path, Lost: one.Lost, Example: key}
		}
		c[one].Objects++
	}
}

// list returns the changes in the order of their paths.
func (c changes) list() []Change {
	all := make([]Change, 0, len(c))
	for _, one := range c {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

func anyLost(all []Change) bool {
	return slices.ContainsFunc(all, func(c Change) bool { return c.Lost })
}

// differences finds the paths at which two values differ. A null counts as no value, since the API server drops it.
func differences(path string, before, after any, found map[Change]bool) {
	old, isMap := before.(map[string]any)
	now, stays := after.(map[string]any)
	oldList, isList := before.([]any)
	nowList, staysList := after.([]any)
	switch {
	case isMap && (stays || after == nil):
		for _, field := range fields(old, now) {
			differences(path+"."+field, old[field], now[field], found)
		}
	case isList && staysList && len(oldList) == len(nowList):
		for i := range oldList {
			differences(path+"[]", oldList[i], nowList[i], found)
		}
	case before == nil && after == nil, reflect.DeepEqual(before, after):
	case before == nil:
		found[Change{Path: path}] = true
	default:
		found[Change{Path: path, Lost: true}] = true
	}
}

// fields are the keys of both maps, in order.
func fields(a, b map[string]any) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}
