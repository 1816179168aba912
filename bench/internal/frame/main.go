package frame

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Benchmark is a program that measures. Its exported fields are its result.
type Benchmark interface {
	// Measure measures. After an error, Main writes no result, except for [ErrIncomplete].
	Measure(context.Context, *Bench) error
	// Summary returns the text that Main prints: a line of the form "NAME: key=value key=value", maybe after tables.
	Summary() string
}

// ErrIncomplete means that the result lacks some measurements.
var ErrIncomplete = errors.New("the result is incomplete")

// Bench is one run of a benchmark.
type Bench struct {
	// Name is the name of the file with the result, without its extension. Measure may change it.
	Name string
	// Binary is the absolute path of the command under measurement.
	Binary string
	// Dir has kubeconfigs and the logs of processes. It is removed at the end, unless -logs names it.
	Dir string

	out      string
	cleanups []func() error
}

// Main is the main function of a benchmark. It adds the flags that all benchmarks have, parses all flags, measures, writes the
// result to a file, prints the summary to stdout, and exits. An interrupt ends the measurement.
func Main(name string, benchmark Benchmark) {
	b := &Bench{Name: name}
	flag.StringVar(&b.Binary, "godwit", "../bin/godwit", "the command to measure")
	flag.StringVar(&b.Dir, "logs", "", "`folder` for kubeconfigs and logs of processes, which is kept; empty: a temporary one")
	flag.StringVar(&b.out, "out", "", "`file` for the result; empty: one in folder out, named after the benchmark")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := b.run(ctx, os.Stdout, benchmark)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func (b *Bench) run(ctx context.Context, stdout io.Writer, benchmark Benchmark) error {
	if err := b.prepare(); err != nil {
		return err
	}
	measured := benchmark.Measure(ctx, b)
	// Print the summary after the servers have ended, because they log to stderr until then.
	var errs []error
	for _, cleanup := range slices.Backward(b.cleanups) {
		errs = append(errs, cleanup())
	}
	if measured == nil || errors.Is(measured, ErrIncomplete) {
		errs = append(errs, b.write(stdout, benchmark))
	}
	return errors.Join(append(errs, measured)...)
}

func (b *Bench) write(stdout io.Writer, benchmark Benchmark) error {
	if b.out == "" {
		b.out = filepath.Join("out", b.Name+".json")
	}
	if err := WriteJSON(b.out, benchmark); err != nil {
		return err
	}
	Logf("the result is in %s", b.out)
	fmt.Fprintln(stdout, benchmark.Summary())
	return nil
}

// prepare makes paths absolute, so that processes in other folders can use them.
func (b *Bench) prepare() (err error) {
	if b.Binary, err = filepath.Abs(b.Binary); err != nil {
		return err
	}
	if b.Dir == "" {
		b.Dir, err = os.MkdirTemp("", "godwit-bench-")
		b.Cleanup(func() error { return os.RemoveAll(b.Dir) })
		return err
	}
	if b.Dir, err = filepath.Abs(b.Dir); err != nil {
		return err
	}
	return os.MkdirAll(b.Dir, 0o700)
}

// Cleanup adds a function that Main calls at the end, before the functions of earlier calls.
func (b *Bench) Cleanup(cleanup func() error) { b.cleanups = append(b.cleanups, cleanup) }

// WriteJSON writes a value to a file, and makes its folder if needed.
func WriteJSON(path string, value any) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// Logf writes a line about the progress to stderr.
func Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
