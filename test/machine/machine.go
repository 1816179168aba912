package machine

import (
	"context"
	"fmt"
	"os"
)

// Main runs the tests of a package in a machine of their own, and returns the exit code. It first calls prepare outside the machine,
// where there is a network.
func Main(ctx context.Context, tests interface{ Run() int }, prepare ...func(context.Context) error) int {
	var code int
	var err error
	switch os.Getenv(roleVariable) {
	case roleTest:
		_ = os.Unsetenv(roleVariable) // which a test of a further machine would inherit
		return tests.Run()
	case roleInit:
		code, err = runInit(ctx)
	case roleSweep:
		err = sweep(ctx, os.Stdin)
	default:
		for _, step := range prepare {
			if err := step(ctx); err != nil {
				fmt.Fprintf(os.Stderr, "prepare the tests: %v\n", err)
				return 1
			}
		}
		code, err = start(ctx)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "machine of its own for the tests: %v\n", err)
		return 1
	}
	return code
}
