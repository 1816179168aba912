package controlplane

import (
	"context"
	"fmt"
	"os"
)

// Main runs a package's tests against one control plane that they share: it starts the
// control plane, sets shared, calls prepare, and stops the control plane after the last
// test. It returns the exit code.
func Main(tests interface{ Run() int }, shared **ControlPlane, prepare ...func(context.Context, *ControlPlane) error) int {
	return Options{}.Main(tests, shared, prepare...)
}

// Main is like the function Main, for a control plane with these options.
func (o Options) Main(tests interface{ Run() int }, shared **ControlPlane, prepare ...func(context.Context, *ControlPlane) error) (code int) {
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
