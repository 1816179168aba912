package resource

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// selection chooses the resources of a command, and the namespace of their objects.
type selection struct {
	names      []string
	all        bool
	everywhere bool
	namespace  string // empty: all
}

func (s *selection) addTo(c *cobra.Command) {
	c.Flags().BoolVar(&s.all, "all", false, "all resources that the API server keeps in etcd, without events")
	c.Flags().BoolVarP(&s.everywhere, "all-namespaces", "A", false, "objects of all namespaces, which is the default")
}

// parse checks what can be checked without a cluster.
func (s *selection) parse(a *frame.App, c *cobra.Command, args []string) error {
	var err error
	if s.namespace, err = a.GivenNamespace(c); err != nil {
		return err
	}
	for _, name := range args {
		for one := range strings.SplitSeq(name, ",") { // as kubectl takes them
			if one == "" {
				return frame.Usagef("%q is not the name of a resource", name)
			}
			if !slices.Contains(s.names, one) {
				s.names = append(s.names, one)
			}
		}
	}
	switch {
	case s.all && len(s.names) > 0:
		return frame.Usagef("give only one of RESOURCE and --all")
	case !s.all && len(s.names) == 0:
		return frame.Usagef("no resource is selected: give RESOURCE... or --all, as in `%s secrets configmaps`", c.CommandPath())
	}
	return nil
}

// arguments are those of `godwit rbac` for the same resources.
func (s *selection) arguments() []string {
	all := slices.Clone(s.names)
	if s.all {
		all = []string{"--all"}
	}
	if s.namespace != "" {
		all = append(all, "--namespace="+s.namespace)
	}
	return all
}
