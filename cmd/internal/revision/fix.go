package revision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/cmd/internal/revision/revisionpermission"
	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/correction"
	"github.com/godwit-dev/godwit/revision/reference"
)

type fixOptions struct {
	*frame.App
	selection
	name   string
	owner  string
	labels []string
	// replacement of a revision that is gone
	replacement string
	change      frame.ChangeFlags

	correction correction.Correction
}

func fixCommand(a *frame.App) *cobra.Command {
	o := &fixOptions{App: a}
	c := &cobra.Command{
		Use:   "fix NAME [-n NAMESPACE] {[--owner=KIND/NAME] [--label=KEY=VALUE]... | --replacement=NAME}",
		Short: "Say what a revision that is Blocked does not say: its controller, its labels, what replaces it",
		Long: "Set the controller or the labels that a revision lacks. `" + a.Program + " revision plan` prints\n" +
			"them beside NoController, UnexpectedOwner and LabelsMissing. --owner replaces the\n" +
			"controller. The data and all other metadata stay as they are.\n\n" +
			"--replacement says which revision holds what NAME held, which is gone: the next run repoints\n" +
			"the references to it. The plan names such a revision beside SourceGone if nothing proves\n" +
			"that it holds the same. Compare it with a backup, or with the status of the machine, first.\n\n" +
			"kubectl can't change a revision whose data a script or a backup tool wrote with spaces or\n" +
			"with unescaped & < >: the API server then answers that data is immutable. This command\n" +
			"sends the data as the bytes that are stored.\n\n" +
			"Exit codes: 0 done or nothing to do; 3 refused, and nothing written; 2 error;\n" +
			"130 interrupted.",
		Example: "  # Make the VirtualMachine that refers to a revision its controller\n  " + a.Program + " revision fix web-copy -n shop --owner=VirtualMachine/web\n\n" +
			"  # Set the labels that name the object of the data\n  " + a.Program + " revision fix web-copy -n shop --label=instancetype.kubevirt.io/object-uid=5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102 --label=instancetype.kubevirt.io/object-generation=1\n\n" +
			"  # Have the references to a revision that is gone name another one\n  " + a.Program + " revision fix web-copy -n shop --replacement=web--v1beta1--0",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.parse(a, c, args); err != nil {
				return err
			}
			return o.Change(c.Context(), &o.change, o.plan)
		},
	}
	flags := c.Flags()
	AddFamilyFlag(c, &o.family)
	flags.StringVar(&o.owner, "owner", "", "the object that becomes the controller, as `KIND/NAME`")
	_ = c.RegisterFlagCompletionFunc("owner", o.completeOwner)
	flags.StringArrayVar(&o.labels, "label", nil, "a label to set, as `KEY=VALUE`; several times for several")
	_ = c.RegisterFlagCompletionFunc("label", cobra.NoFileCompletions)
	flags.StringVar(&o.replacement, "replacement", "", "the revision that holds what NAME held, which is gone")
	_ = c.RegisterFlagCompletionFunc("replacement", cobra.NoFileCompletions)
	o.change.AddYesTo(c)
	return c
}

// completeOwner completes the kinds.
func (o *fixOptions) completeOwner(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var kinds []string
	for _, kind := range o.ownerKinds() {
		kinds = append(kinds, kind+"/")
	}
	return kinds, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func (o *fixOptions) ownerKinds() []string {
	var kinds []string
	for _, one := range Families[o.family.Value].Describe().Owners {
		kinds = append(kinds, one.Kind)
	}
	return kinds
}

// parse checks what can be checked without a cluster.
func (o *fixOptions) parse(a *frame.App, c *cobra.Command, args []string) error {
	var err error
	if o.namespace, err = a.GivenNamespace(c); err != nil {
		return err
	}
	switch {
	case len(args) != 1:
		return frame.Usagef("specify one NAME; `%s plan` lists the revisions", c.Parent().CommandPath())
	case o.owner == "" && len(o.labels) == 0 && o.replacement == "":
		return frame.Usagef("specify --owner, --label or --replacement; `%s plan` prints them", c.Parent().CommandPath())
	case o.replacement != "" && (o.owner != "" || len(o.labels) > 0):
		return frame.Usagef("--replacement is of a revision that is gone, which has neither --owner nor --label")
	}
	if o.name, err = bareName(args[0]); err != nil {
		return err
	}
	if err := o.parseCorrection(); err != nil {
		return err
	}
	if o.replacement != "" {
		if o.correction.Replacement, err = bareName(o.replacement); err != nil {
			return err
		}
	}
	return o.defaultNamespace(a)
}

func (o *fixOptions) parseCorrection() error {
	if o.owner != "" {
		kind, name, _ := strings.Cut(o.owner, "/")
		if known := o.ownerKinds(); name == "" || !slices.Contains(known, kind) {
			return frame.Usagef("invalid argument %q for \"--owner\": write it as KIND/NAME, of which KIND is %s", o.owner, strings.Join(known, " or "))
		}
		o.correction.Owner = reference.Owner{Kind: kind, Name: name}
	}
	o.correction.Labels = map[string]string{}
	for _, label := range o.labels {
		key, value, found := strings.Cut(label, "=")
		if wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); !found || len(wrong) > 0 {
			return frame.Usagef("invalid argument %q for \"--label\": write it as KEY=VALUE", label)
		}
		o.correction.Labels[key] = value
	}
	return nil
}

// describe names the controller and the labels to set.
func (o *fixOptions) describe() string {
	var all []string
	if o.owner != "" {
		all = append(all, "controller "+o.correction.Owner.Kind+" "+o.correction.Owner.Name)
	}
	for _, key := range slices.Sorted(maps.Keys(o.correction.Labels)) {
		all = append(all, "label "+key+"="+o.correction.Labels[key])
	}
	if o.replacement != "" {
		all = append(all, "replacement "+o.correction.Replacement)
	}
	return strings.Join(all, ", ")
}

// fix is a planned correction.
type fix struct {
	*fixOptions
	session *session
	written bool
	err     error
}

func (o *fixOptions) plan(ctx context.Context) (frame.Change, error) {
	s, err := connect(ctx, o.App, revisionpermission.Fix, &o.selection, revision.Options{})
	if err != nil {
		return nil, err
	}
	if err := s.missing(ctx, o.namespace); err != nil {
		return nil, frame.Refuse(err)
	}
	return &fix{fixOptions: o, session: s}, nil
}

// Question implements frame.Change.
func (f *fix) Question() (string, error) {
	return fmt.Sprintf("Set %s of controllerrevision %s/%s on %s?", f.describe(), f.namespace, f.name, f.session.Where()), nil
}

// Run implements frame.Change.
func (f *fix) Run(ctx context.Context) {
	c, err := correction.New(f.session.Config, f.session.family)
	if err != nil {
		f.err = err
		return
	}
	f.written, f.err = c.Fix(ctx, types.NamespacedName{Namespace: f.namespace, Name: f.name}, f.correction)
}

// End implements frame.Change.
func (f *fix) End(ctx context.Context) error {
	switch {
	case apierrors.IsNotFound(f.err):
		return &frame.ActionableError{
			Reason:  render.ReasonNotFound,
			Message: fmt.Sprintf("%v in namespace %s", f.err, f.namespace),
			Remedy:  "list the revisions: " + f.Hint("revision plan -n "+f.namespace),
		}
	case errors.Is(f.err, correction.ErrExists):
		return &frame.ActionableError{Message: f.err.Error(), Remedy: "upgrade it: " + f.Hint("revision run -n "+f.namespace)}
	case f.err != nil:
		return f.session.explain(ctx, f.err)
	}
	state := "is set"
	if !f.written {
		state = "was set before"
	}
	_, err := fmt.Fprintf(f.Streams.Out, "controllerrevision %s/%s: %s %s\n", f.namespace, f.name, f.describe(), state)
	return err
}
