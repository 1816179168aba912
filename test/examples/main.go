// Command examples runs the operators of examples/ on a control plane of its own, each as its author would: the release
// that makes v2 the storage version is installed over objects of v1, the operator starts with the rights that its
// markers ask for and none besides, and ends on SIGTERM. It says what happened, and fails where that is not what the
// example promises. The test of this package does the same, and compares the rights with those that were used.
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

// playAll expects the repository's root to be the working directory.
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
