package fieldmigration

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// NotIdempotentError means that Fill changes fields that it has filled itself. API servers call admission
// several times for one request, and once for each later write.
type NotIdempotentError struct {
	// Input, Once and Twice are JSON: the fields, and the results of applying Fill once and twice.
	Input, Once, Twice string
}

func (e *NotIdempotentError) Error() string {
	return fmt.Sprintf("Fill is not idempotent: of %s it makes %s, and of that %s", e.Input, e.Once, e.Twice)
}

// NotPureError means that Fill returns different fields for the same argument.
type NotPureError struct {
	// Input, First and Second are JSON.
	Input, First, Second string
}

func (e *NotPureError) Error() string {
	return fmt.Sprintf("Fill depends on more than its argument: of %s it makes %s, and then %s", e.Input, e.First, e.Second)
}

// variants is how many objects are generated from the samples.
const variants = 2000

// Check checks that applying Fill twice equals applying it once: on the samples, on the results of Fill, and on random
// combinations of both. The objects are the same in each call; [Migration.Fuzz] finds others. Samples should have the
// fields of each older release, and those of the new one.
func (m Migration[F]) Check(samples ...F) error {
	if len(samples) == 0 {
		return errors.New("no samples are given")
	}
	var pool []map[string]any
	for _, sample := range samples {
		// A sample is not passed to Fill itself, which may change it.
		fields, err := decode[map[string]any](sample)
		if err != nil {
			return err
		}
		_, filled, err := m.run(fields)
		if err != nil {
			return err
		}
		pool = append(pool, fields, filled)
	}
	for _, fields := range pool {
		if err := m.check(fields); err != nil {
			return err
		}
	}
	mix := newMixer(pool)
	for range variants {
		fields := mix.next()
		if _, err := decode[F](fields); err != nil {
			continue // no object of this type
		}
		if err := m.check(fields); err != nil {
			return err
		}
	}
	return nil
}

// Fuzz runs the check of [Migration.Check] as a fuzz test, on JSON that begins with the samples.
func (m Migration[F]) Fuzz(f *testing.F, samples ...F) {
	f.Helper()
	for _, sample := range samples {
		data, err := utiljson.Marshal(sample)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fields, err := decode[map[string]any](rawJSON(data))
		if err != nil || fields == nil {
			return
		}
		if _, err := decode[F](fields); err != nil {
			return
		}
		if err := m.check(fields); err != nil {
			t.Error(err)
		}
	})
}

// rawJSON is unparsed JSON.
type rawJSON []byte

// MarshalJSON returns the text, which the encoder checks.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

func (m Migration[F]) check(fields map[string]any) error {
	before, once, err := m.run(fields)
	if err != nil {
		return err
	}
	_, again, err := m.run(fields)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(once, again) {
		return &NotPureError{Input: text(before), First: text(once), Second: text(again)}
	}
	_, twice, err := m.run(once)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(once, twice) {
		return &NotIdempotentError{Input: text(before), Once: text(once), Twice: text(twice)}
	}
	return nil
}

func text(fields map[string]any) string {
	data, err := utiljson.Marshal(fields)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
