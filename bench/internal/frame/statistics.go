package frame

import (
	"math"
	"slices"
	"time"
)

// Median returns the middle value, or the mean of the two in the middle; 0 for no values.
func Median[T any](of []T, value func(T) float64) float64 {
	if len(of) == 0 {
		return 0
	}
	values := make([]float64, len(of))
	for i, v := range of {
		values[i] = value(v)
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

// Ratio divides, and is 0 if there is nothing to compare with: JSON has no infinity.
func Ratio(of, to float64) float64 {
	if to == 0 {
		return 0
	}
	return of / to
}

// MedianRatio returns the median of the ratios within each round, because the speed of a shared machine changes between rounds.
func MedianRatio[T any](rounds []T, of, to func(T) float64) float64 {
	return Median(rounds, func(round T) float64 { return Ratio(of(round), to(round)) })
}

// Percentile returns the smallest measured value that is not exceeded by the given share of all values. share is above 0, and at
// most 1. Percentile returns 0 for no values.
func Percentile(of []time.Duration, share float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// MiB converts bytes.
func MiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }
