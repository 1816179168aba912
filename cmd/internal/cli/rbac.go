package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/cmd/internal/operator"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// everyGroup is RBAC's own word.
const everyGroup = "*"

func (a *app) rbacCommand() *cobra.Command {
	rights := operator.Rights{Namespace: "godwit", ServiceAccount: "godwit"}
	var all bool
	write := choice{value: string(crdmigrator.WritePatch), kind: "string"}
	for _, w := range crdmigrator.Writes {
		write.allowed = append(write.allowed, string(w))
	}
	controller := choice{value: operator.StorageVersionMigrator, allowed: operator.Controllers, kind: "string"}
	c := &cobra.Command{
		Use:   "rbac {--group GROUP... | --all-groups | --controller=revisionUpgrader}",
		Short: "Print the roles that the manager needs, and no more",
		Long: "Print the roles and bindings that `" + a.program + " manager` needs to migrate the custom resources of\n" +
			"some API groups, for a ServiceAccount. Nothing is sent to a cluster.\n\n" +
			"With --all-groups it could write every custom resource that there is, and every\n" +
			"other object too: name the groups where you can.",
		Example: "  " + a.program + " rbac --group=example.com --group=gateway.networking.k8s.io | kubectl apply -f -",
		Args:    noArguments,
		RunE: func(_ *cobra.Command, _ []string) error {
			rights.Feature = controller.value
			switch {
			case rights.Feature != operator.StorageVersionMigrator:
				if all || len(rights.Groups) > 0 {
					return usagef("--group and --all-groups are for %s", operator.StorageVersionMigrator)
				}
			case all && len(rights.Groups) > 0:
				return usagef("--group and --all-groups exclude each other")
			case all:
				rights.Groups = []string{everyGroup}
			case len(rights.Groups) == 0:
				return usagef("say which API groups: --group=GROUP, several times, or --all-groups")
			}
			for _, group := range rights.Groups {
				// "" would be the core group, every Secret in it.
				if !all && (!strings.Contains(group, ".") || len(validation.IsDNS1123Subdomain(group)) > 0) {
					return usagef("%q is no API group of custom resources: write it as in example.com; every group is --all-groups", group)
				}
			}
			rights.Writes = []crdmigrator.Write{crdmigrator.Write(write.value)}
			for _, o := range rights.Objects() {
				text, err := yaml.Marshal(o)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(a.streams.Out, "---\n%s", text); err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&rights.Groups, "group", nil, "an API group whose objects may be migrated; several times for several")
	flags.BoolVar(&all, "all-groups", false, "every API group")
	controller.addTo(c, "controller", "", "whose roles")
	write.addTo(c, "write", "", "the write that the configuration names, if it is not the default one")
	flags.StringVar(&rights.ServiceAccount, "service-account", rights.ServiceAccount, "whom the manager runs as; the roles are called the same")
	flags.StringVar(&rights.Namespace, "service-account-namespace", rights.Namespace, "where it runs")
	return c
}
