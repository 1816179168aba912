//go:build !linux

package controlplane

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
)

// errLinuxOnly is the error of functions that need namespaces.
var errLinuxOnly = fmt.Errorf("%w on %s: an API server gets an identity of its own from a UTS namespace, which only Linux has",
	errors.ErrUnsupported, runtime.GOOS)

func dyingWithParent(_, binary string) (string, error) { return binary, nil }

func onHost(string, *exec.Cmd) error { return errLinuxOnly }
