package fieldmigration

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
)

// mixer makes objects that are like those of a pool: of two of them, with fields dropped, emptied and
// changed by chance. Values that are random altogether would seldom have a meaning to Fill.
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

// endings are what a user may add to a value; names seldom have them.
var endings = []string{" ", "/", "-x", "É", "0"}

// value is the value itself, the one of the other object, the zero value, or one that is near to it.
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
