package fleet

// claim is a name in an account.
type claim struct{ account, name string }

// users has, for each name, the managed resources that have it now or would have it. Nearly every name has one user,
// which needs no list.
type users struct {
	facts []Fact
	first map[claim]int // index of a fact
	all   map[claim][]int
}

func usersOf(facts []Fact) users {
	u := users{facts: facts, first: make(map[claim]int, len(facts)), all: map[claim][]int{}}
	for i, f := range facts {
		if !f.Managed {
			continue
		}
		for _, name := range []string{f.current(), f.Proposal.Name} {
			if name != "" {
				u.add(claim{f.Account, name}, i)
			}
		}
	}
	return u
}

func (u users) add(c claim, i int) {
	first, has := u.first[c]
	switch {
	case !has:
		u.first[c] = i
	case first == i: // both its names are the same
	case u.all[c] == nil:
		u.all[c] = []int{first, i}
	case u.all[c][len(u.all[c])-1] != i:
		u.all[c] = append(u.all[c], i)
	}
}

// shared reports whether several managed resources have a name now, in any spelling.
func (u users) shared(c claim) bool {
	n := 0
	for _, i := range u.all[c] {
		if f := u.facts[i]; f.current() == c.name || f.Proposal.Spelling && f.Proposal.Name == c.name {
			n++
		}
	}
	return n > 1
}

// share returns the users of a name if it has several.
func (u users) share(c claim) []string {
	var objects []string
	for _, i := range u.all[c] {
		objects = append(objects, key(u.facts[i].Namespace, u.facts[i].Name))
	}
	return objects
}

func key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
