// Command generator writes the types and the controllers of the provider, with Upjet's pipeline.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/crossplane/upjet/v2/pkg/pipeline"
	"github.com/crossplane/upjet/v2/pkg/types"

	"github.com/godwit-dev/godwit/examples/provider-upjet/config"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generator FOLDER")
		os.Exit(2)
	}
	provider, err := config.Provider()
	if err != nil {
		fmt.Fprintln(os.Stderr, "generator:", err)
		os.Exit(1)
	}
	root := os.Args[1]
	// Upjet's pipeline.Run writes cluster-scoped kinds, too.
	runner := &pipeline.PipelineRunner{
		DirAPIs:               filepath.Join(root, "apis"),
		DirControllers:        filepath.Join(root, "internal", "controller"),
		DirExamples:           filepath.Join(root, "examples-generated"),
		DirHack:               filepath.Join(root, "hack"),
		ModulePathAPIs:        filepath.Join(provider.ModulePath, "apis"),
		ModulePathControllers: filepath.Join(provider.ModulePath, "internal", "controller"),
		Scope:                 types.CRDScopeNamespaced,
	}
	runner.Run(provider)
}
