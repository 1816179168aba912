package controlplane

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
)

// waiting is the number of tests of a package that run in parallel. It may be larger than the number of cores, because such
// tests mostly wait for servers.
const waiting = 4

// Parallel sets how many tests of a package run in parallel, unless the flag or an earlier call does. It parses the flags.
func Parallel(tests int) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		_ = flag.Set("test.parallel", strconv.Itoa(tests))
	}
}

// Test is the test that a control plane is for: a *testing.T.
type Test interface {
	Helper()
	Context() context.Context
	Cleanup(func())
	Error(...any)
	Fatal(...any)
}

// StartFor starts a control plane for one test, and stops it with the test.
func (o Options) StartFor(t Test) *ControlPlane {
	t.Helper()
	cp, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cp
}

// Main runs a package's tests against one control plane that they share: it starts the
// control plane, sets shared, calls prepare, and stops the control plane after the last
// test. It returns the exit code. It sets Parallel for tests that wait.
func Main(tests interface{ Run() int }, shared **ControlPlane, prepare ...func(context.Context, *ControlPlane) error) int {
	return Options{}.Main(tests, shared, prepare...)
}

// Main is like the function Main, for a control plane with these options.
func (o Options) Main(tests interface{ Run() int }, shared **ControlPlane, prepare ...func(context.Context, *ControlPlane) error) (code int) {
	Parallel(waiting)
	ctx := context.Background()
	failed := func(err error) bool {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		return err != nil
	}
	cp, err := Start(ctx, o)
	if failed(err) {
		return code
	}
	defer func() { failed(cp.Stop()) }()
	*shared = cp
	for _, step := range prepare {
		if failed(step(ctx, cp)) {
			return code
		}
	}
	return tests.Run()
}
