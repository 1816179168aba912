package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// parent started this process.
var parent = os.Getppid()

// errParentEnded ends the tests of a go test that was killed: it can no longer end them.
var errParentEnded = errors.New("the process that started the tests has ended")

// whileParentLives returns a context that ends when the parent has.
func whileParentLives(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for os.Getppid() == parent {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		cancel(errParentEnded)
	}()
	return ctx
}

// Main runs the tests of a package in a machine of their own, and returns the exit code. It first calls prepare outside the machine,
// where there is a network. It ends all of it when the process that has started it ends, such as a go test that is killed.
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
		ctx = whileParentLives(ctx)
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
