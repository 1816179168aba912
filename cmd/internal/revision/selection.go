package revision

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/kubevirt"
)

// Families by name.
var Families = map[string]decision.Family{kubevirt.Name: kubevirt.Family{}}

// software that a family belongs to, for messages.
var software = map[string]string{kubevirt.Name: "KubeVirt"}

// selection chooses the revisions of a command.
type selection struct {
	family     frame.Choice
	everywhere bool
	namespace  string // empty: all
	selector   string
	selected   labels.Selector
}

func (o *selection) addTo(c *cobra.Command) {
	AddFamilyFlag(c, &o.family)
	frame.AddAllNamespaces(c, &o.everywhere)
	frame.AddSelector(c, &o.selector, "revisions that an object with these labels refers to")
}

// AddFamilyFlag registers the flag --family.
func AddFamilyFlag(c *cobra.Command, family *frame.Choice) {
	*family = frame.Choice{Value: kubevirt.Name, Allowed: slices.Sorted(maps.Keys(Families)), Kind: "string"}
	family.AddTo(c, "family", "", "which kind of stored objects")
}

// parse checks what can be checked without a cluster.
func (o *selection) parse(a *frame.App, c *cobra.Command) error {
	if err := frame.NoArguments(c, c.Flags().Args()); err != nil {
		return frame.Usage(err)
	}
	var err error
	if o.namespace, err = a.GivenNamespace(c); err != nil {
		return err
	}
	o.selected, err = frame.ParseSelector(o.selector)
	return err
}

// defaultNamespace is that of the kubeconfig's context, for a command that changes named revisions.
func (o *selection) defaultNamespace(a *frame.App) error {
	if o.namespace != "" {
		return nil
	}
	var err error
	if o.namespace, _, err = a.Cluster.ToRawKubeConfigLoader().Namespace(); err != nil {
		return frame.BadKubeconfig(err)
	}
	return nil
}

// bareName is the name in an argument, which may have the resource before it, as kubectl prints it.
func bareName(argument string) (string, error) {
	bare := argument[strings.LastIndex(argument, "/")+1:]
	if bare == "" {
		return "", frame.Usagef("%q is not the name of a controllerrevision", argument)
	}
	return bare, nil
}

// isWholeCluster reports whether the command reads the whole cluster, so that it knows which versions can be dropped.
func (o *selection) isWholeCluster() bool { return o.namespace == "" && o.selected == nil }

func (o *selection) scope() revision.Scope {
	return revision.Scope{Namespace: o.namespace, Selector: o.selected}
}

// policyFlags are the flags of revision.Policy that a plan depends on.
type policyFlags struct {
	target    string
	onRunning frame.Choice
	losses    frame.Choice
}

const (
	lossFail  = "Fail"
	lossAllow = "Allow"
)

func (o *policyFlags) addTo(c *cobra.Command) {
	c.Flags().StringVar(&o.target, "target-version", "", "`version` to upgrade to (default: the storage version of the CRD)")
	_ = c.RegisterFlagCompletionFunc("target-version", cobra.NoFileCompletions)
	o.addOnRunning(c)
	o.losses = frame.Choice{Value: lossFail, Allowed: []string{lossFail, lossAllow}, Kind: "string"}
	o.losses.AddTo(c, "loss-policy", "", "fields that the target version does not have; Fail: do not upgrade the revision; Allow: keep the fields, which no reader uses")
}

func (o *policyFlags) addOnRunning(c *cobra.Command) {
	o.onRunning = frame.Choice{Value: string(decision.Defer), Allowed: []string{string(decision.Defer), string(decision.Hold)}, Kind: "string"}
	o.onRunning.AddTo(c, "on-running", "", "virtual machines that run; Defer: upgrade after they stop; Hold: upgrade now, and keep the old revision until they stop")
}

func (o *policyFlags) policy() decision.Policy {
	return decision.Policy{Target: o.target, OnRunning: decision.OnRunning(o.onRunning.Value), AllowLosses: o.losses.Value == lossAllow}
}

// purposeOf returns the permissions of a revision command, and their scope.
func purposeOf(c permission.Command, scope *selection) frame.Purpose {
	where := []string{"--all-namespaces"}
	if scope.namespace != "" {
		where = []string{"--namespace=" + scope.namespace}
	}
	return frame.Purpose{Command: c, Scope: where}
}
