package frame

import "context"

// Turn measures one contestant in a round, and returns what it has measured, for the log.
type Turn func(context.Context) (measured string, err error)

// TakeTurns measures one round, numbered from 0. Each turn follows the same preparation. Each round begins with another
// contestant, so that no contestant always runs after the same other one.
func TakeTurns(ctx context.Context, round int, prepare func(context.Context) error, turns []Turn) error {
	for i := range turns {
		if err := prepare(ctx); err != nil {
			return err
		}
		measured, err := turns[(round+i)%len(turns)](ctx)
		if err != nil {
			return err
		}
		Logf("round %d: %s", round+1, measured)
	}
	return nil
}

// InFlight are the widths to try for a ceiling. A width is a number of requests, or objects, at the same time.
var InFlight = []int{8, 16, 24}

// Ceiling returns the width with the highest median speed of all rounds, and that median.
func Ceiling[T any](rounds []T, speed func(round T, width int) float64) (width int, median float64) {
	for _, w := range InFlight {
		if m := Median(rounds, func(t T) float64 { return speed(t, w) }); m > median {
			width, median = w, m
		}
	}
	return width, median
}
