package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/test/controlplane"
)

const (
	module = "sigs.k8s.io/gateway-api"
	// before stores v1beta1, after stores v1; both serve both.
	before = "v1.0.0"
	after  = "v1.4.0"

	group      = "gateway.networking.k8s.io"
	oldVersion = "v1beta1"
	newVersion = "v1"
)

// plurals are the resources of which v1.0.0 and v1.4.0 have the same versions.
var plurals = []string{"gatewayclasses", "gateways", "httproutes"}

var kinds = map[string]string{"gatewayclasses": "GatewayClass", "gateways": "Gateway", "httproutes": "HTTPRoute"}

func definitionName(plural string) string { return plural + "." + group }

func resource(plural, version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
}

// definitions reads those of one release, in the order of plurals. The module
// cache has them as they were released, with their checksum.
func definitions(ctx context.Context, version string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	dir, err := download(ctx, module+"@"+version)
	if err != nil {
		return nil, err
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, plural := range plurals {
		file, err := os.ReadFile(filepath.Join(dir, "config", "crd", "standard", group+"_"+plural+".yaml"))
		if err != nil {
			return nil, fmt.Errorf("read the definition of %s: %w", plural, err)
		}
		crds, err := controlplane.DecodeCRDs(file)
		if err != nil {
			return nil, fmt.Errorf("decode the definition of %s: %w", plural, err)
		}
		all = append(all, crds...)
	}
	return all, nil
}

// download asks the go command for the folder of a module. It is run where no
// go.mod and no workspace has a say in it.
func download(ctx context.Context, module string) (string, error) {
	dir, err := os.MkdirTemp("", "godwit-demo-")
	if err != nil {
		return "", fmt.Errorf("make a folder to download from: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GO111MODULE=on")
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	var got struct{ Dir, Error string }
	_ = json.Unmarshal(stdout.Bytes(), &got) // there is none when go itself failed
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("the demo gets the Gateway API's definitions by the go command, which is not in PATH: install Go 1.26 or add it to PATH")
	case err != nil || got.Dir == "":
		why := strings.Join(strings.Fields(got.Error+" "+stderr.String()), " ")
		return "", fmt.Errorf("get the Gateway API's definitions, Go module %s: %s: try it by itself: GOWORK=off go mod download %[1]s", module, why)
	}
	return got.Dir, nil
}
