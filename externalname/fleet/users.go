package fleet

import (
	"github.com/godwit-dev/godwit/externalname/internal/evidence"
)

// claim is a name in an account.
type claim struct{ account, name string }

// users has, for each name, the managed resources that have it now or would have it. Nearly every name has one user,
// which needs no list.
type users struct {
	facts []Fact
	first map[claim]int // index of a fact
	all   map[claim][]int
	// others has, for the key of each managed resource whose external resource others have under another spelling, their keys.
	others map[string][]string
}

func usersOf(facts []Fact) users {
	u := users{facts: facts, first: make(map[claim]int, len(facts)), all: map[claim][]int{}, others: sharersBy(facts)}
	for i, f := range facts {
		if !f.Managed || f.NameLost { // what an expression makes of a lost name is no name
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

// sharersBy finds managed resources that certainly have one external resource.
func sharersBy(facts []Fact) map[string][]string {
	subjects := make([]evidence.Subject, len(facts))
	for i, f := range facts {
		if f.Managed && !f.NameLost {
			subjects[i] = f.subject
		}
	}
	shared := map[string][]string{}
	for _, g := range evidence.Share(subjects) {
		if g.Sameness != evidence.Certain {
			continue
		}
		var keys []string
		for _, i := range g.Members {
			keys = append(keys, key(facts[i].Namespace, facts[i].Name))
		}
		for _, one := range keys {
			shared[one] = keys
		}
	}
	return shared
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
