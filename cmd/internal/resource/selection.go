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
	everywhere bool   // the default: the flag is for those who are used to it
	namespace  string // empty: all
}

func (s *selection) addTo(c *cobra.Command) {
	frame.AddAll(c, &s.all, "all resources that the API server keeps in etcd, without events")
	frame.AddAllNamespaces(c, &s.everywhere)
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
		return frame.Usagef("RESOURCE and --all are mutually exclusive")
	case !s.all && len(s.names) == 0:
		return frame.Usagef("specify RESOURCE... or --all, as in `%s secrets configmaps`", c.CommandPath())
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
