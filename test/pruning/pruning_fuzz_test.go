package pruning

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// FuzzUnkept compares two schemas, and an object that is valid at the first one. If no path is unkept, the API server
// reads the object at the second schema with each of its values. Paths that are unkept although this object keeps its values
// are counted: they cost a look at the objects, and no value.
func FuzzUnkept(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(binary.LittleEndian.AppendUint64(nil, seed))
	}
	f.Fuzz(func(t *testing.T, seed []byte) {
		var key [32]byte
		copy(key[:], seed)
		g := generator{rand.New(rand.NewChaCha8(key))}
		from, to := g.pair()
		if len(values.Unkept(from, to)) > 0 {
			return
		}
		old, next := structural(t, from), structural(t, to)
		for range 8 {
			if lost := g.lostIn(t, old, next, from); len(lost) > 0 {
				t.Fatalf("no path is unkept, and the API server drops %v\nfrom %s\nto %s", lost, text(from), text(to))
			}
		}
	})
}

// FuzzPruned compares the two ways to prune an object of any form.
func FuzzPruned(f *testing.F) {
	for seed := range uint64(64) {
		f.Add(binary.LittleEndian.AppendUint64(nil, seed))
	}
	f.Fuzz(func(t *testing.T, seed []byte) {
		var key [32]byte
		copy(key[:], seed)
		g := generator{rand.New(rand.NewChaCha8(key))}
		from, to := g.pair()
		object := g.object(from)
		got := values.Pruned(to, object)
		read(t, object, structural(t, to))
		if diff := cmp.Diff(object, got); diff != "" {
			t.Errorf("the API server keeps another object (-server +godwit):\n%s\nschema %s", diff, text(to))
		}
	})
}

// TestUnkeptIsExact counts how often a path is unkept although no object with many values loses one.
func TestUnkeptIsExact(t *testing.T) {
	const pairs, objects = 300, 20
	var kept, lossy, careful int
	for seed := range uint64(pairs) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		from, to := g.pair()
		unkept := len(values.Unkept(from, to)) > 0
		lost := false
		old, next := structural(t, from), structural(t, to)
		for i := 0; i < objects && !lost; i++ {
			lost = len(g.lostIn(t, old, next, from)) > 0
		}
		switch {
		case lost && !unkept:
			t.Errorf("pair %d loses values, and no path is unkept\nfrom %s\nto %s", seed, text(from), text(to))
		case lost:
			lossy++
		case unkept:
			careful++
		default:
			kept++
		}
	}
	t.Logf("of %d pairs, %d keep all values, %d lose some, %d have an unkept path and lost no value of %d objects each", pairs, kept, lossy, careful, objects)
	if kept == 0 || lossy == 0 {
		t.Errorf("the pairs are all of one kind: %d keep their values, and %d lose some", kept, lossy)
	}
}

// structural is a schema as the API server uses it.
func structural(t *testing.T, s *schema) *structuralschema.Structural {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(s, internal, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		t.Fatalf("%v: %s", err, text(s))
	}
	if errs := structuralschema.ValidateStructural(nil, structural); len(errs) > 0 {
		t.Fatalf("%v: %s", errs, text(s))
	}
	return structural
}

// lostIn returns the paths of the values of a new object at the first schema that the API server drops when it reads the
// object at the second one.
func (g generator) lostIn(t *testing.T, from, to *structuralschema.Structural, valid *schema) []string {
	t.Helper()
	before := g.object(valid)
	read(t, before, from)
	after := runtime.DeepCopyJSON(before)
	read(t, after, to)
	return lostValues("", before, after)
}

// read does what the API server does to an object that it reads from etcd.
func read(t *testing.T, object map[string]any, s *structuralschema.Structural) {
	t.Helper()
	if err := objectmeta.Coerce(nil, object, s, true, true); err != nil {
		t.Fatal(err)
	}
	pruning.Prune(object, s, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s)
}

// lostValues are the paths of the values of before that after does not have.
func lostValues(path string, before, after any) []string {
	switch before := before.(type) {
	case map[string]any:
		now, ok := after.(map[string]any)
		if !ok {
			return []string{path}
		}
		var all []string
		for _, k := range slices.Sorted(maps.Keys(before)) {
			if _, stays := now[k]; !stays {
				all = append(all, path+"."+k)
				continue
			}
			all = append(all, lostValues(path+"."+k, before[k], now[k])...)
		}
		return all
	case []any:
		now, ok := after.([]any)
		if !ok || len(now) != len(before) {
			return []string{path}
		}
		var all []string
		for i := range before {
			all = append(all, lostValues(fmt.Sprintf("%s[%d]", path, i), before[i], now[i])...)
		}
		return all
	}
	if !cmp.Equal(before, after) {
		return []string{path}
	}
	return nil
}
