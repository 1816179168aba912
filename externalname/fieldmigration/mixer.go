package fieldmigration

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
)

// mixer generates objects that are similar to those of a pool: it combines two of them, and drops, empties and changes
// random fields. Completely random values would seldom be meaningful to Fill.
type mixer struct {
	pool   []map[string]any
	random *rand.Rand
}

// newMixer returns a mixer whose objects are the same in each run, so that a failure can be repeated.
func newMixer(pool []map[string]any) *mixer {
	return &mixer{pool: pool, random: rand.New(rand.NewPCG(1, 2))}
}

func (m *mixer) next() map[string]any {
	return m.object(m.pool[m.random.IntN(len(m.pool))], m.pool[m.random.IntN(len(m.pool))])
}

// object has fields of both objects; a third of them is dropped.
func (m *mixer) object(one, other map[string]any) map[string]any {
	all := maps.Clone(other)
	maps.Copy(all, one)
	made := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if m.random.IntN(3) == 0 {
			continue
		}
		a, isObject := one[name].(map[string]any)
		b, isObjectToo := other[name].(map[string]any)
		if isObject && isObjectToo {
			made[name] = m.object(a, b)
			continue
		}
		made[name] = m.value(all[name], other[name])
	}
	return made
}

// endings are suffixes that a user may add to a value, but that names seldom have.
var endings = []string{" ", "/", "-x", "É", "0"}

// value returns the value, the value of the other object, the zero value, or a similar value.
func (m *mixer) value(value, other any) any {
	switch m.random.IntN(4) {
	case 0:
		if other != nil {
			return other
		}
	case 1:
		if value != nil {
			return reflect.Zero(reflect.TypeOf(value)).Interface()
		}
	case 2:
		switch value := value.(type) {
		case string:
			return value + endings[m.random.IntN(len(endings))]
		case int64:
			return value + m.random.Int64N(5) - 2
		case bool:
			return !value
		}
	}
	return value
}
