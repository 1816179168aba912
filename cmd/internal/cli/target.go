package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// selection is which definitions a command is about.
type selection struct {
	names    []string
	selector string
	all      bool
}

func (s *selection) addTo(c *cobra.Command) {
	c.Flags().StringVarP(&s.selector, "selector", "l", "", "only customresourcedefinitions with these labels, as in kubectl")
}

// parse checks what can be checked without a cluster. all tells whether no
// selection at all means everything.
func (s *selection) parse(c *cobra.Command, args []string, all bool) error {
	if c.Flags().Changed("namespace") {
		return usagef("--namespace means nothing here: customresourcedefinitions, and their migration, span all namespaces")
	}
	if _, err := labels.Parse(s.selector); err != nil {
		return usagef("invalid argument %q for \"-l, --selector\": %v", s.selector, err)
	}
	s.names = make([]string, len(args))
	for i, name := range args {
		if s.names[i] = bareName(name); s.names[i] == "" || strings.Contains(s.names[i], "/") {
			return usagef("%q is not the name of a customresourcedefinition", name)
		}
	}
	chosen := 0
	for _, given := range []bool{len(args) > 0, s.selector != "", s.all} {
		if given {
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return usagef("choose by NAME, by --selector or by --all, one of them")
	case chosen == 0 && !all:
		return usagef("which customresourcedefinitions? give NAME..., --selector or --all; `%s plan` shows what there is", c.Parent().CommandPath())
	}
	return nil
}

// arguments are those of `godwit rbac` that say the same, with the write if it is not
// the default one.
func (s *selection) arguments(w crdmigrator.Write) []string {
	var all []string
	if w != "" && w != crdmigrator.WritePatch {
		all = append(all, "--write="+string(w))
	}
	switch {
	case len(s.names) > 0:
		return append(all, s.names...)
	case s.selector != "":
		return append(all, "--selector="+s.selector)
	}
	return append(all, "--all")
}

// bareName takes names as kubectl prints them with -o name, and short forms.
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

// resolve lists the names that are meant, each once.
func (s *session) resolve(ctx context.Context, sel selection) ([]string, error) {
	if len(sel.names) > 0 {
		var names []string
		for _, name := range sel.names {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return names, nil
	}
	names, err := s.Names(ctx, sel.selector)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	if len(names) == 0 && sel.selector != "" {
		// A selector with a typo must not pass as "nothing left to do".
		return nil, &problem{
			reason:  report.ReasonNotFound,
			message: fmt.Sprintf("no customresourcedefinition on %s matches --selector %s", s.where(), sel.selector),
			remedy:  "see the labels: kubectl get crd --show-labels",
		}
	}
	slices.Sort(names)
	return names, nil
}

// completeNames completes NAME arguments from the cluster.
func (a *app) completeNames(c *cobra.Command, given []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), dialTimeout)
	defer cancel()
	s, err := a.connect(ctx, purpose{}, crdmigrator.Options{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := s.Names(ctx, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, toComplete) || slices.Contains(given, name)
	}), cobra.ShellCompDirectiveNoFileComp
}

// suggestNames adds to errors about definitions that do not exist the names
// that may have been meant.
func (s *session) suggestNames(ctx context.Context, findings []finding) {
	var known []string
	for i := range findings {
		f := &findings[i]
		if f.problem == nil || !errors.Is(f.problem, crdmigrator.ErrNotFound) {
			continue
		}
		if known == nil {
			var err error
			if known, err = s.Names(ctx, ""); err != nil {
				return
			}
		}
		if near := suggest(f.name, known); len(near) > 0 {
			f.problem.remedy = "did you mean " + strings.Join(near, " or ") + "?"
		}
	}
}
