package frame

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// CompleteNames completes arguments with names from a cluster, except those on the command line. It offers no names if
// they can't be read.
func CompleteNames(names func(context.Context) ([]string, error)) cobra.CompletionFunc {
	return func(c *cobra.Command, given []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), DialTimeout)
		defer cancel()
		all, err := names(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all = slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, toComplete) || slices.Contains(given, name) })
		slices.Sort(all)
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteFirst completes only the first argument.
func CompleteFirst(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, given []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(given) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(c, given, toComplete)
	}
}
