package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/gomodule"
)

// sources are the packages of KubeVirt's types. A kind is stored at the first of its
// versions here. v1.6.3 is the last release that had v1alpha1 and v1alpha2.
var sources = []struct{ module, folder string }{
	{"kubevirt.io/api@v1.9.0", "core/v1"},
	{"kubevirt.io/api@v1.9.0", "snapshot/v1beta1"},
	{"kubevirt.io/api@v1.9.0", "snapshot/v1alpha1"},
	{"kubevirt.io/api@v1.9.0", "pool/v1beta1"},
	{"kubevirt.io/api@v1.9.0", "pool/v1alpha1"},
	{"kubevirt.io/api@v1.9.0", "instancetype/v1beta1"},
	{"kubevirt.io/api@v1.6.3", "instancetype/v1alpha2"},
	{"kubevirt.io/api@v1.6.3", "instancetype/v1alpha1"},
}

// statusByCRD names the CRDs of stored objects and of their referrers, and says whether each has the
// subresource status.
var statusByCRD = map[string]bool{
	"virtualmachines.kubevirt.io":                                 true,
	"virtualmachineinstances.kubevirt.io":                         false,
	"virtualmachinesnapshots.snapshot.kubevirt.io":                true,
	"virtualmachinesnapshotcontents.snapshot.kubevirt.io":         true,
	"virtualmachinerestores.snapshot.kubevirt.io":                 true,
	"virtualmachinepools.pool.kubevirt.io":                        true,
	"virtualmachineinstancetypes.instancetype.kubevirt.io":        false,
	"virtualmachineclusterinstancetypes.instancetype.kubevirt.io": false,
	"virtualmachinepreferences.instancetype.kubevirt.io":          false,
	"virtualmachineclusterpreferences.instancetype.kubevirt.io":   false,
}

// Install adds KubeVirt's CRDs to a control plane, and returns when they are
// served.
func Install(ctx context.Context, config *rest.Config) error {
	crds, err := CRDs(ctx)
	if err != nil {
		return err
	}
	return controlplane.InstallCRDs(ctx, config, crds...)
}

// InstallLater adds the CRDs of KubeVirt v1.7 and later, of which those of stored objects define
// v1beta1 alone.
func InstallLater(ctx context.Context, config *rest.Config) error {
	crds, err := CRDs(ctx)
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if crd.Spec.Group == kubevirt.Group {
			crd.Spec.Versions = crd.Spec.Versions[:1]
		}
	}
	return controlplane.InstallCRDs(ctx, config, crds...)
}

// CRDs returns KubeVirt's CRDs, in order of their names. The first call on a
// machine takes half a minute and needs the Go module proxy.
func CRDs(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	dir, err := generated(ctx)
	if err != nil {
		return nil, fmt.Errorf("generate KubeVirt's CRDs: %w", err)
	}
	byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for i := range sources {
		if err := addFrom(folder(dir, i), byName); err != nil {
			return nil, fmt.Errorf("read KubeVirt's CRDs in %s: %w", dir, err)
		}
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for name, hasStatus := range statusByCRD {
		crd := byName[name]
		if crd == nil {
			return nil, fmt.Errorf("generate KubeVirt's CRDs: %s has no %s", dir, name)
		}
		complete(crd, hasStatus)
		crds = append(crds, crd)
	}
	slices.SortFunc(crds, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return cmp.Compare(a.Name, b.Name) })
	return crds, nil
}

// addFrom adds the versions that the files of one folder define.
func addFrom(dir string, byName map[string]*apiextensionsv1.CustomResourceDefinition) error {
	crds, err := controlplane.ReadCRDs(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if known := byName[crd.Name]; known != nil {
			known.Spec.Versions = append(known.Spec.Versions, crd.Spec.Versions...)
			continue
		}
		byName[crd.Name] = crd
	}
	return nil
}

// complete adds the fields for which KubeVirt's types have no markers.
func complete(crd *apiextensionsv1.CustomResourceDefinition, hasStatus bool) {
	if strings.HasPrefix(crd.Name, "virtualmachinecluster") {
		crd.Spec.Scope = apiextensionsv1.ClusterScoped
	}
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		version.Storage = i == 0
		if hasStatus {
			version.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
		}
	}
}

// generated returns the folder with the output of controller-gen. It runs
// controller-gen if the folder does not exist. Of two processes that do so, the
// first renames its whole folder into place.
func generated(ctx context.Context) (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	tool := filepath.Join(root, "tools", "controller-gen", "go.mod")
	pinned, err := os.ReadFile(tool)
	if err != nil {
		return "", err
	}
	of := sha256.Sum256(fmt.Appendf(nil, "%s\n%v", pinned, sources))
	dir := filepath.Join(root, "bin", "kubevirt", "crd-"+hex.EncodeToString(of[:])[:12])
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return "", err
	}
	unfinished, err := os.MkdirTemp(filepath.Dir(dir), ".unfinished-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(unfinished) }() // after a success, the folder was renamed
	program, err := output(ctx, root, "go", "tool", "-modfile="+tool, "-n", "controller-gen")
	if err != nil {
		return "", err
	}
	for i := range sources {
		if err := generate(ctx, program, i, folder(unfinished, i)); err != nil {
			return "", err
		}
	}
	if err := os.Rename(unfinished, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, nil
}

// generate runs controller-gen within KubeVirt's module, so that it reads the types
// with the versions of libraries with which KubeVirt released them.
func generate(ctx context.Context, program string, source int, to string) error {
	of := sources[source]
	module, err := gomodule.Dir(ctx, of.module)
	if err != nil {
		return err
	}
	_, err = output(ctx, module, program, "crd:allowDangerousTypes=true,maxDescLen=0", "paths=./"+of.folder, "output:crd:dir="+to)
	return err
}

func folder(dir string, source int) string {
	return filepath.Join(dir, strings.ReplaceAll(sources[source].folder, "/", "-"))
}

// repository returns the folder above the working directory, or above the program,
// that has the tools.
func repository() (string, error) {
	for _, locate := range []func() (string, error){os.Getwd, os.Executable} {
		from, err := locate()
		if err != nil {
			return "", err
		}
		for dir := from; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if _, err := os.Stat(filepath.Join(dir, "tools", "controller-gen", "go.mod")); err == nil {
				return dir, nil
			}
		}
	}
	return "", errors.New("there is no tools/controller-gen above the working directory or the program: run it within the repository")
}

// output runs a program without go.work, so that the modules of the workspace do not
// change its dependencies.
func output(ctx context.Context, dir, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("run %s in %s: %w: %s", command, dir, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSpace(string(text)), nil
}
