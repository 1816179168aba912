package crd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// Selection selects the CRDs of a command.
type Selection struct {
	Names    []string
	Selector string
	All      bool
}

// AddTo registers the flag --selector.
func (s *Selection) AddTo(c *cobra.Command) {
	frame.AddSelector(c, &s.Selector, "CRDs with these labels")
}

// Parse checks the selection before the command connects. If all is true, no selection means
// all CRDs.
func (s *Selection) Parse(c *cobra.Command, args []string, all bool) error {
	if c.Flags().Changed("namespace") {
		return frame.Usagef("remove --namespace: CRDs are not namespaced, and a migration covers all namespaces")
	}
	if _, err := frame.ParseSelector(s.Selector); err != nil {
		return err
	}
	s.Names = make([]string, len(args))
	for i, name := range args {
		if s.Names[i] = bareName(name); s.Names[i] == "" || strings.Contains(s.Names[i], "/") {
			return frame.Usagef("%q is not the name of a CRD", name)
		}
	}
	chosen := 0
	for _, given := range []bool{len(args) > 0, s.Selector != "", s.All} {
		if given {
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return frame.Usagef("NAME, --selector and --all are mutually exclusive")
	case chosen == 0 && !all:
		return frame.Usagef("specify NAME..., --selector or --all; `%s plan` lists the CRDs", c.Parent().CommandPath())
	}
	return nil
}

// arguments returns the arguments of `godwit rbac` for the same CRDs, with --write unless it
// is the default.
func (s *Selection) arguments(w decision.Write) []string {
	var all []string
	if w != "" && w != decision.WritePatch {
		all = append(all, "--write="+string(w))
	}
	switch {
	case len(s.Names) > 0:
		return append(all, s.Names...)
	case s.Selector != "":
		return append(all, "--selector="+s.Selector)
	}
	return append(all, "--all")
}

// bareName returns the name of a CRD that may have a resource before it, as with kubectl's
// -o name.
func bareName(name string) string {
	kind, rest, ok := strings.Cut(name, "/")
	kinds := []string{
		"crd", "crds", "customresourcedefinition", "customresourcedefinitions",
		"customresourcedefinition.apiextensions.k8s.io", "customresourcedefinitions.apiextensions.k8s.io",
	}
	if ok && slices.Contains(kinds, kind) {
		return rest
	}
	return name
}

// resolve lists the names of the selected CRDs, each once.
func (s *session) resolve(ctx context.Context, sel Selection) ([]string, error) {
	if len(sel.Names) > 0 {
		var names []string
		for _, name := range sel.Names {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return names, nil
	}
	names, err := s.Names(ctx, sel.Selector)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	if len(names) == 0 && sel.Selector != "" {
		// A selector with a typing error must not look like "nothing to do".
		return nil, &frame.ActionableError{
			Reason:  render.ReasonNotFound,
			Message: fmt.Sprintf("no CRD on %s matches --selector %s", s.Where(), sel.Selector),
			Remedy:  "list the labels: kubectl get crd --show-labels",
		}
	}
	slices.Sort(names)
	return names, nil
}

// NamesOf lists the names of the selected CRDs, each once. It sends no other request to the
// cluster.
func NamesOf(ctx context.Context, a *frame.App, sel Selection) ([]string, error) {
	s, err := connect(ctx, a, frame.Purpose{Command: crdpermission.Verify, Scope: sel.arguments("")}, storageversion.Options{})
	if err != nil {
		return nil, err
	}
	return s.resolve(ctx, sel)
}

// CompleteNames completes NAME arguments from the cluster.
func CompleteNames(a *frame.App) cobra.CompletionFunc {
	return frame.CompleteNames(func(ctx context.Context) ([]string, error) {
		s, err := connect(ctx, a, frame.Purpose{}, storageversion.Options{})
		if err != nil {
			return nil, err
		}
		return s.Names(ctx, "")
	})
}
