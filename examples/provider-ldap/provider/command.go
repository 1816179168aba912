package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	xpcontroller "github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "github.com/godwit-dev/godwit/examples/provider-ldap/api/v1"
	"github.com/godwit-dev/godwit/examples/provider-ldap/directory"
	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/externalname/crossplane/export"
	"github.com/godwit-dev/godwit/externalname/ready"
)

// Cluster returns the configuration of the cluster, as ctrl.GetConfig does. A command that needs no cluster does not call it.
type Cluster func() (*rest.Config, error)

// ExitError ends the program with an exit code. The command has printed everything.
type ExitError struct{ Code export.Code }

func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// passwordVariable has the password of --bind-dn. Every user of the machine could see the password in a flag.
const passwordVariable = "LDAP_PASSWORD"

// Command returns the command of the provider.
func Command(cluster Cluster) *cobra.Command {
	root := &cobra.Command{
		Use:           "provider-ldap",
		Short:         "Manage an LDAP directory by Crossplane",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(runCommand(cluster), exportCommand(cluster), readyCommand(cluster))
	return root
}

// NewScheme returns a scheme with the kinds of the provider, and Secrets.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(v1.AddToScheme(scheme), corev1.AddToScheme(scheme))
}

// Descriptions returns the description of each kind's external names, for the reference pages.
func Descriptions() []crossplane.Description {
	return []crossplane.Description{Persons(nil).Describe(), Groups(nil).Describe(), Memberships(nil).Describe()}
}

// Setup adds the controllers of all kinds to a manager.
func Setup(m manager.Manager, o xpcontroller.Options) error {
	at := Configured(m.GetClient())
	return errors.Join(Persons(at).Setup(m, o), Groups(at).Setup(m, o), Memberships(at).Setup(m, o))
}

func runCommand(cluster Cluster) *cobra.Command {
	var poll time.Duration
	var metrics string
	command := &cobra.Command{
		Use:   "run",
		Short: "Run the controllers",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := cluster()
			if err != nil {
				return err
			}
			scheme, err := NewScheme()
			if err != nil {
				return err
			}
			m, err := ctrl.NewManager(config, manager.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: metrics}})
			if err != nil {
				return err
			}
			if err := Setup(m, xpcontroller.Options{PollInterval: poll, MaxConcurrentReconciles: 1}); err != nil {
				return err
			}
			return m.Start(c.Context())
		},
	}
	command.Flags().DurationVar(&poll, "poll", time.Minute, "time between two observations of a resource")
	command.Flags().StringVar(&metrics, "metrics-bind-address", ":8080", "address to serve metrics at; 0 to serve none")
	return command
}

// exportFlags say which directory is exported, and for which ProviderConfig.
type exportFlags struct {
	config    types.NamespacedName
	directory directory.Config
	dryRun    bool
}

func exportCommand(cluster Cluster) *cobra.Command {
	var flags exportFlags
	command := &cobra.Command{
		Use:   "export",
		Short: "Print manifests that import what the directory has",
		Long: `Print manifests that import what the directory has. They have managementPolicies: [Observe], so that applying them changes
nothing in the directory. Standard output has YAML and nothing else; progress and warnings are on standard error.

The ProviderConfig of the cluster says how to reach the directory. With --url, no cluster is needed, and the password is read
from the environment variable ` + passwordVariable + `.

Exit codes: 0 everything was exported; 2 nothing could be exported; 4 a part was exported; 130 a signal ended it.`,
		Example: `  provider-ldap export --namespace directory --dry-run | kubectl apply -f -`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			exporter, err := flags.exporter(c.Context(), cluster)
			if err != nil {
				return err
			}
			exporter.Out, exporter.Log = c.OutOrStdout(), c.ErrOrStderr()
			report, err := exporter.Run(c.Context())
			if err != nil {
				fmt.Fprintln(c.ErrOrStderr(), err)
			}
			if code := export.CodeOf(report, err); code != export.OK {
				return &ExitError{Code: code}
			}
			return nil
		},
	}
	f := command.Flags()
	f.StringVarP(&flags.config.Namespace, "namespace", "n", "default", "namespace of the ProviderConfig and of the manifests")
	f.StringVar(&flags.config.Name, "provider-config", "default", "name of the ProviderConfig")
	f.StringVar(&flags.directory.URL, "url", "", "URL of the directory, to export without a cluster")
	f.StringVar(&flags.directory.BaseDN, "base-dn", "", "with --url: the entry below which all entries are")
	f.StringVar(&flags.directory.BindDN, "bind-dn", "", "with --url: the user")
	f.BoolVar(&flags.dryRun, "dry-run", false, "have the API server check each manifest before it is printed")
	command.MarkFlagsRequiredTogether("url", "base-dn", "bind-dn")
	return command
}

func (f exportFlags) exporter(ctx context.Context, cluster Cluster) (export.Exporter, error) {
	var c client.Client
	if f.directory.URL == "" || f.dryRun {
		var err error
		if c, err = newClient(cluster); err != nil {
			return export.Exporter{}, err
		}
	}
	config := f.directory
	if config.URL == "" {
		var err error
		if config, err = ConfigOf(ctx, c, f.config); err != nil {
			return export.Exporter{}, err
		}
	} else {
		config.Password = os.Getenv(passwordVariable)
	}
	at := func(context.Context, resource.ModernManaged) (*directory.Client, error) {
		return directory.New(config), nil
	}
	exporter := export.Exporter{Kinds: Exports(at, f.config)}
	if f.dryRun {
		exporter.Check = export.DryRun(c)
	}
	return exporter, nil
}

func readyCommand(cluster Cluster) *cobra.Command {
	var namespace string
	command := &cobra.Command{
		Use:   "ready",
		Short: "List imports that can be managed, and print the patch for each",
		Long: `List the objects that only observe a resource, and whose spec is as the resource is: managing them changes nothing. Standard
output has one kubectl command for each. Standard error says why the others are not ready.

Exit codes: 0 every object that only observes is ready; 1 some are not; 2 an error.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := newClient(cluster)
			if err != nil {
				return err
			}
			waiting := 0
			for _, kind := range []string{"Person", "Group", "Membership"} {
				err := ready.List(c.Context(), cl, v1.GroupVersion.WithKind(kind), namespace, func(d ready.Decision) {
					if d.Ready {
						fmt.Fprintln(c.OutOrStdout(), d.Command)
						return
					}
					waiting++
					fmt.Fprintf(c.ErrOrStderr(), "%s %s/%s: %s: %s\n", d.Kind, d.Namespace, d.Name, d.Reason, d.Message)
				})
				if err != nil {
					return err
				}
			}
			if waiting > 0 {
				return &ExitError{Code: 1}
			}
			return nil
		},
	}
	command.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the objects; empty for all")
	return command
}

func newClient(cluster Cluster) (client.Client, error) {
	config, err := cluster()
	if err != nil {
		return nil, err
	}
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}
