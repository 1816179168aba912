//go:build !linux

package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
)

func unsupported() error {
	return fmt.Errorf("%w on %s: run these tests on Linux, as root", errors.ErrUnsupported, runtime.GOOS)
}

func start(context.Context) (int, error) { return 0, unsupported() }

func runInit(context.Context) (int, error) { return 0, unsupported() }

func sweep(context.Context, io.Reader) error { return unsupported() }

// MakeCgroup returns an error: only Linux has cgroups.
func MakeCgroup(string) error { return unsupported() }

// ExhaustMemory returns an error: only Linux has cgroups.
func ExhaustMemory(context.Context, int) error { return unsupported() }
