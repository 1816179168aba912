package evidence

import (
	"slices"
)

// Sameness says whether two managed resources have one external resource.
type Sameness uint8

const (
	// Distinct means that they have different ones, or that nothing suggests that they have the same.
	Distinct Sameness = iota
	// Likely means that they have the same name, and that they differ in fields that may or may not be of its identity.
	Likely
	// Certain means that all that identifies the external resource is equal.
	Certain
)

// Compare compares two managed resources.
func Compare(a, b Subject) Sameness {
	if a.Kind != b.Kind {
		return Distinct
	}
	for id, value := range a.IDs {
		if other, both := b.IDs[id]; both && other != value {
			return Distinct
		}
	}
	for id, value := range a.IDs {
		if b.IDs[id] == value && Unique(value) {
			return a.unlessChildren(b)
		}
	}
	if a.Group != b.Group {
		return Distinct
	}
	return compareNames(a, b)
}

// compareNames compares two managed resources of one kind whose identifiers prove nothing.
func compareNames(a, b Subject) Sameness {
	name, id := a.commonName(b), a.commonID(b)
	// A name that is the default of both proves nothing, unless one is of the kind of v1 and the other of that of v2.
	weak := a.Default && b.Default && a.V2 == b.V2
	switch {
	case Unique(name):
		return Certain
	case name == "" && id == "", !a.sameAccount(b), differs(a.place, b.place):
		return Distinct
	case name != "" && id != "":
		return Certain
	case len(a.observed) > 0 && len(b.observed) > 0:
		if weak || differs(a.observed, b.observed) {
			return Likely
		}
		return a.unlessChildren(b)
	case weak, differs(a.spec, b.spec):
		return Likely
	}
	return Certain
}

// unlessChildren returns what equal identifiers prove. Two children of one resource have its identifier in some kinds: their names
// differ, and so do their specs.
func (s Subject) unlessChildren(other Subject) Sameness {
	if s.commonName(other) == "" && len(s.Names) > 0 && len(other.Names) > 0 && differs(s.spec, other.spec) {
		return Likely
	}
	return Certain
}

// commonName returns a name that both have, or empty.
func (s Subject) commonName(other Subject) string {
	for _, name := range s.Names {
		if slices.Contains(other.Names, name) {
			return name
		}
	}
	return ""
}

// commonID returns the name of a field that has the same identifier, or empty.
func (s Subject) commonID(other Subject) string {
	for id, value := range s.IDs {
		if other.IDs[id] == value {
			return id
		}
	}
	return ""
}

// sameAccount reports whether two ProviderConfigs are the same one. Crossplane v1 and v2 have different kinds of them: a
// migration keeps the name.
func (s Subject) sameAccount(other Subject) bool {
	return s.Account == other.Account || s.Legacy != other.Legacy && s.Config == other.Config
}

// differs reports whether a field that both have differs.
func differs(a, b []field) bool {
	return slices.ContainsFunc(a, func(one field) bool {
		return slices.ContainsFunc(b, func(other field) bool { return one.name == other.name && one.value != other.value })
	})
}

// Group are managed resources of one external resource, as indexes.
type Group struct {
	Members  []int
	Sameness Sameness
}

// key is what managed resources of one external resource have in common. Only those with a common key are compared.
type key struct{ scope, kind, name string }

func (s Subject) keys() []key {
	var keys []key
	for _, name := range s.Names {
		keys = append(keys, key{s.Group, s.Kind, name})
	}
	for id, value := range s.IDs {
		if Unique(value) {
			keys = append(keys, key{"", s.Kind, value})
		} else {
			keys = append(keys, key{s.Group + " " + id, s.Kind, value})
		}
	}
	return keys
}

// Share finds the groups of managed resources that have one external resource, in the order of their first member. A managed
// resource may be in a group that is certain, and in a larger one that is likely.
func Share(all []Subject) []Group {
	certain, likely := sets{}, sets{}
	for _, members := range usersOf(all) {
		compare(all, members, certain, likely)
	}
	groups := certain.groups(Certain)
	for _, g := range likely.groups(Likely) {
		if !slices.ContainsFunc(groups, func(known Group) bool { return slices.Equal(known.Members, g.Members) }) {
			groups = append(groups, g)
		}
	}
	slices.SortStableFunc(groups, func(a, b Group) int { return a.Members[0] - b.Members[0] })
	return groups
}

// usersOf returns the managed resources of each key that several have. Most keys have one, which needs no list.
func usersOf(all []Subject) map[key][]int {
	users, first := map[key][]int{}, map[key]int{}
	for i, s := range all {
		for _, k := range s.keys() {
			at, has := first[k]
			switch {
			case !has:
				first[k] = i
			case at == i:
			case users[k] == nil:
				users[k] = []int{at, i}
			case users[k][len(users[k])-1] != i:
				users[k] = append(users[k], i)
			}
		}
	}
	return users
}

// maxHeads bounds the comparisons of a name that many managed resources have in different places.
const maxHeads = 100

// compare joins the members that have one external resource. It compares each with one of each set.
func compare(all []Subject, members []int, certain, likely sets) {
	var heads []int
	inPlace := map[uint64]int{} // a head that is in the same place
	for _, i := range members {
		found := false
		candidates := heads
		if at, has := inPlace[all[i].where()]; has {
			candidates = append([]int{at}, heads...)
		}
		for _, head := range candidates {
			same := Compare(all[head], all[i])
			if same == Certain {
				certain.join(head, i)
			}
			if same != Distinct {
				likely.join(head, i)
			}
			if found = same == Certain; found {
				break
			}
		}
		if found {
			continue
		}
		if inPlace[all[i].where()] = i; len(heads) < maxHeads {
			heads = append(heads, i)
		}
	}
}

// where returns a hash of the account and of the place, in any order of its fields.
func (s Subject) where() uint64 {
	sum := hashOf(s.Config, "").name
	for _, f := range s.place {
		sum += f.name ^ f.value
	}
	return sum
}

// sets are disjoint sets of indexes: each index has one of its set that is lower, or itself.
type sets map[int]int

func (s sets) root(i int) int {
	for {
		lower, has := s[i]
		if !has || lower == i {
			return i
		}
		i = lower
	}
}

func (s sets) join(a, b int) {
	a, b = s.root(a), s.root(b)
	s[max(a, b)], s[min(a, b)] = min(a, b), min(a, b)
}

func (s sets) groups(same Sameness) []Group {
	members := map[int][]int{}
	for i := range s {
		members[s.root(i)] = append(members[s.root(i)], i)
	}
	var groups []Group
	for _, all := range members {
		slices.Sort(all)
		groups = append(groups, Group{all, same})
	}
	slices.SortFunc(groups, func(a, b Group) int { return a.Members[0] - b.Members[0] })
	return groups
}
