package frame

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// TestTakeTurns: each round has each turn once, after a preparation, and begins with another one. The first error ends it.
func TestTakeTurns(t *testing.T) {
	var order []string
	failing := ""
	turn := func(name string) Turn {
		return func(context.Context) (string, error) {
			order = append(order, name)
			if name == failing {
				return "", errors.New("failed")
			}
			return name, nil
		}
	}
	prepare := func(context.Context) error {
		order = append(order, "prepare")
		return nil
	}
	turns := []Turn{turn("a"), turn("b"), turn("c")}
	for round, want := range [][]string{
		{"prepare", "a", "prepare", "b", "prepare", "c"},
		{"prepare", "b", "prepare", "c", "prepare", "a"},
	} {
		order = nil
		if err := TakeTurns(t.Context(), round, prepare, turns); err != nil || !slices.Equal(order, want) {
			t.Errorf("round %d: %v, %v, want %v", round, order, err, want)
		}
	}
	order, failing = nil, "b"
	if err := TakeTurns(t.Context(), 0, prepare, turns); err == nil || slices.Contains(order, "c") {
		t.Errorf("after a turn that failed: %v, %v", order, err)
	}
	broken := func(context.Context) error { return errors.New("broken") }
	if err := TakeTurns(t.Context(), 0, broken, turns); err == nil {
		t.Error("a preparation failed, and there is no error")
	}
}

// TestCeiling goes by the median: one lucky round is not the best width.
func TestCeiling(t *testing.T) {
	rounds := []map[int]float64{{8: 10, 16: 9}, {8: 10, 16: 90}, {8: 11, 16: 9}}
	if width, speed := Ceiling(rounds, func(r map[int]float64, w int) float64 { return r[w] }); width != 8 || speed != 10 {
		t.Errorf("%d, at %v", width, speed)
	}
	if width, speed := Ceiling(nil, func(map[int]float64, int) float64 { return 1 }); width != 0 || speed != 0 {
		t.Errorf("no round: %d, at %v", width, speed)
	}
}
