// Command examples runs the operators of examples/ on a control plane of its own: it installs the release that makes v2
// the storage version over objects of v1, starts the operator with exactly the permissions of its markers, and ends it by
// SIGTERM. It prints each step, and fails if the example does not do what its README states. The test of this package
// does the same, and compares the permissions with the permissions that the operator used.
//
// Read play.go, then operator.go; role.go turns markers into roles.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/godwit-dev/godwit/test/controlplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := playAll(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "examples:", err)
		os.Exit(1)
	}
}

// playAll must run in the repository's root.
func playAll(ctx context.Context, out io.Writer) (err error) {
	fmt.Fprintln(out, "A control plane of its own")
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	for _, e := range examples {
		if err := newPlay(e, plane, "examples", out).run(ctx); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return nil
}
