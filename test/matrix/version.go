package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// version is a version of Kubernetes that can be built.
type version struct {
	minor string // as in 1.34
	exact string // as in 1.34.2
	// assets is the folder of its programs.
	assets string
	build  []string // the command
}

var required = regexp.MustCompile(`(?m)^(?:require|\t)\s*k8s\.io/kubernetes v([0-9.]+)`)

// findVersions finds the versions of tools/matrix, and the pinned version of tools/controlplane, the oldest first.
func findVersions(root string) ([]version, error) {
	mods, err := filepath.Glob(filepath.Join(root, "tools", "matrix", "*", "go.mod"))
	if err != nil {
		return nil, err
	}
	pinned := filepath.Join(root, "tools", "controlplane", "go.mod")
	var all []version
	for _, mod := range append(mods, pinned) {
		text, err := os.ReadFile(mod)
		if err != nil {
			return nil, err
		}
		m := required.FindSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("%s requires no k8s.io/kubernetes", mod)
		}
		v := version{exact: string(m[1]), minor: minorOf(string(m[1]))}
		v.assets, v.build = filepath.Join(root, "bin", "matrix", v.minor), []string{filepath.Join(root, "tools", "matrix", "build.sh"), v.minor}
		if mod == pinned {
			v.assets, v.build = filepath.Join(root, "bin", "controlplane"), []string{filepath.Join(root, "tools", "controlplane", "build.sh")}
		}
		if folder := filepath.Base(filepath.Dir(mod)); mod != pinned && folder != v.minor {
			return nil, fmt.Errorf("%s requires Kubernetes %s", mod, v.exact)
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b version) int { return strings.Compare(a.minor, b.minor) }) // 1.31 to 1.99
	return all, nil
}

func minorOf(exact string) string {
	parts := strings.SplitN(exact, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// choose returns the versions with these minors. Without names, it returns all versions.
func choose(all []version, names []string) ([]version, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []version
	for _, name := range names {
		i := slices.IndexFunc(all, func(v version) bool { return v.minor == name })
		if i < 0 {
			known := make([]string, len(all))
			for k, v := range all {
				known[k] = v.minor
			}
			return nil, fmt.Errorf("there is no Kubernetes %s here: choose of %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// compile builds the programs. The error has the line of the output with the cause.
func (v version) compile(ctx context.Context, out io.Writer) error {
	var text bytes.Buffer
	c := exec.CommandContext(ctx, v.build[0], v.build[1:]...)
	c.Stdout, c.Stderr = out, io.MultiWriter(out, &text)
	// With KUBEBUILDER_ASSETS, the tests would use that folder instead of this build.
	c.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "KUBEBUILDER_ASSETS=") }), "CGO_ENABLED=0")
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s", cause(text.String(), err))
	}
	return nil
}

var compileError = regexp.MustCompile(`\.go:\d+`)

// cause returns the most useful line of a failed build: the first error of the compiler, or else the last line.
func cause(output string, err error) string {
	var last string
	for l := range strings.Lines(output) {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		if compileError.MatchString(l) {
			return l
		}
		last = l
	}
	if last == "" {
		return err.Error()
	}
	return last
}
