// Package measure has what every measurement needs: a life, numbers that stand for
// many, and a place for the result.
package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Median is the middle value, or the mean of the two in the middle; 0 of none.
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

// Percentile is the least value such that share of all values, above 0 and up to
// 1, are no greater: one that was measured, never one in between. It is 0 of none.
func Percentile(of []time.Duration, share float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// Ratio is 0 where there is nothing to compare with, which JSON has a word for.
func Ratio(of, to float64) float64 {
	if to == 0 {
		return 0
	}
	return of / to
}

// InFlight are the widths that a ceiling is searched at: requests, or objects, at once.
var InFlight = []int{8, 16, 24}

// Best is the one of these whose median speed in all rounds is the highest, and that
// median.
func Best[T any](rounds []T, speed func(T, int) float64) (width int, median float64) {
	for _, w := range InFlight {
		if m := Median(rounds, func(t T) float64 { return speed(t, w) }); m > median {
			width, median = w, m
		}
	}
	return width, median
}

// Main is the life of a command that measures: until it has, fails, or is interrupted.
// What it returns is for os.Exit.
func Main(ctx context.Context, run func(context.Context) error) (code int) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// Each calls do for every one, width at a time, until one of them fails.
func Each[T any](of []T, width int, do func(T) error) error {
	next := make(chan T)
	failed := make(chan error, width)
	var workers sync.WaitGroup
	for range width {
		workers.Go(func() {
			for one := range next {
				if err := do(one); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	var err error
feed:
	for _, one := range of {
		select {
		case next <- one:
		case err = <-failed:
			break feed
		}
	}
	close(next)
	workers.Wait()
	select {
	case late := <-failed:
		return late
	default:
		return err
	}
}

// Write writes a result as JSON, to a file and to the log.
func Write(out io.Writer, path string, result any) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	text, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", text)
	return err
}

// Say tells on stderr how far a measurement is.
func Say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
