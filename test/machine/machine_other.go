//go:build !linux

package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
)

func start(context.Context) (int, error) {
	return 0, fmt.Errorf("%w on %s: run these tests on Linux, as root", errors.ErrUnsupported, runtime.GOOS)
}

func runInit(ctx context.Context) (int, error) { return start(ctx) }

func sweep(ctx context.Context, _ io.Reader) error {
	_, err := start(ctx)
	return err
}

// MakeCgroup returns an error: only Linux has cgroups.
func MakeCgroup(string) error {
	_, err := start(context.TODO())
	return err
}
