package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// assetsVariable is envtest's variable for the folder of a control plane's programs.
const assetsVariable = "KUBEBUILDER_ASSETS"

// builtBinaries is where tools/controlplane/build.sh installs, relative to the repository root.
var builtBinaries = filepath.Join("bin", "controlplane")

// findBinaries returns the folder of the control plane's programs. If KUBEBUILDER_ASSETS names a folder without them, it fails:
// with another folder, a test would run on another version than its author chose.
func findBinaries() (string, error) {
	if dir := os.Getenv(assetsVariable); dir != "" {
		if err := checkBinaries(dir); err != nil {
			return "", fmt.Errorf("use %s=%s: %w: correct it, or unset it and run `make controlplane`", assetsVariable, dir, err)
		}
		return filepath.Abs(dir)
	}
	for _, locate := range []func() (string, error){os.Getwd, os.Executable} {
		from, err := locate()
		if err != nil {
			return "", fmt.Errorf("find the control plane's binaries: %w", err)
		}
		for dir := from; ; dir = filepath.Dir(dir) {
			if found := filepath.Join(dir, builtBinaries); checkBinaries(found) == nil {
				return found, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", fmt.Errorf("find etcd and kube-apiserver: no %s above the working directory or the program: run `make controlplane` (minutes, once) or set %s",
		builtBinaries, assetsVariable)
}

// Kubectl returns the path of the kubectl beside the servers, which envtest's own downloads have, too.
func Kubectl() (string, error) {
	dir, err := findBinaries()
	if err == nil {
		err = checkBinary(dir, "kubectl")
	}
	if err != nil {
		return "", fmt.Errorf("find kubectl beside kube-apiserver: %w", err)
	}
	return filepath.Join(dir, "kubectl"), nil
}

// checkBinaries does not require kube-controller-manager, which envtest's own downloads lack and few tests need.
func checkBinaries(dir string) error {
	return errors.Join(checkBinary(dir, "etcd"), checkBinary(dir, "kube-apiserver"))
}

func checkBinary(dir, name string) error {
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a folder", filepath.Join(dir, name))
	}
	return nil
}
