package check

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

func command(a *frame.App) *cobra.Command {
	o := &options{App: a}
	c := &cobra.Command{
		Use:   "check {-f {FILE|DIR|-}... [--steps=DIR | --previous=OLD] | OLD NEW}",
		Short: "Check whether the CRDs of the next release are safe for the cluster, and find the steps if not; changes nothing",
		Long: "Compare the CRDs of your next release with the CRDs of the cluster. The check finds CRDs that\n" +
			"the API server would refuse. It also finds CRDs that the API server would accept although\n" +
			"stored objects could then no longer be read or applied.\n\n" +
			"The command changes nothing. It reads, and it sends the CRDs to the API server as a dry run.\n" +
			"Where the release removes a version, it reads the metadata of all objects, page by page. Where the\n" +
			"release stops serving a version, it looks for what else names the version, as `" + a.Program + " crd doctor`\n" +
			"does: that reads the metadata of all objects of the cluster. See --references.\n\n" +
			"Files are YAML or JSON with any number of documents. The check reads the CRDs in them, also in\n" +
			"lists, and ignores other kinds. It ignores CRDs that only the cluster has.\n\n" +
			"Where the release removes a version that is served, or at which objects may be stored, the check\n" +
			"has the steps in between. --steps writes them as manifests for each CRD, and as bridge.sh, which\n" +
			"runs them with kubectl and godwit, and then checks that the API server accepts the release:\n\n" +
			"  Serve       add the version of the release, served\n" +
			"  Store       make it the storage version\n" +
			"  Migrate     rewrite every object at it\n" +
			"  Unserve     stop serving the old versions, and remove them from managedFields\n" +
			"  Remove      remove the old versions\n" +
			"  Unconvert   remove the conversion webhook, if the release has none and the API server would refuse\n" +
			"              what another field manager keeps of it, such as an injector of CA bundles\n\n" +
			"No step loses a field, or writes labels or annotations. Only Unconvert writes spec.conversion.\n" +
			"Objects are converted by the conversion webhook of the installed release, whose controller has to\n" +
			"run until Migrate has ended, or by no webhook, if the new version has every field of the old one.\n" +
			"Otherwise the steps are Blocked, and no file is written: the reason says between which versions a\n" +
			"release in between has to convert. With --between, it names the file.\n\n" +
			"With two arguments, the files or directories of the previous release and of the next one, the command\n" +
			"connects to no cluster. The results hold for each cluster that has the previous release. What only a\n" +
			"cluster shows is Unknown, with what has to be true before the release: that no object is stored at a\n" +
			"version that it removes, and that nothing names a version that it does not serve.\n\n" +
			"With --previous, the command connects to no cluster either. It prints for each change of a schema\n" +
			"that is not additive the approach by which new and existing objects get to the next release:\n\n" + approachHelp +
			"Results: Safe, Refused (the API server would refuse the CRD), Unsafe (the API server would\n" +
			"accept it, and objects would be unreadable), Unknown (the check could not read what it\n" +
			"needs). Reasons marked with · are notes.\n" +
			"Exit codes: 0 all are Safe, 3 some are Refused or Unsafe, 1 some are Unknown, 2 error. With --steps,\n" +
			"reasons that end with the steps do not count once these are written, and 3 also means that some\n" +
			"steps are Blocked. With --previous: 0 no advice, 1 advice, 2 error.",
		Example: "  # In the pipeline of your operator, against a cluster with the previous release\n" +
			"  " + a.Program + " crd check -f config/crd\n\n" +
			"  # Without a cluster, as on each change of the CRDs\n" +
			"  git show v1.4.0:config/crd/widgets.yaml | " + a.Program + " crd check - config/crd/widgets.yaml\n\n" +
			"  # Check what a chart or an overlay renders\n" +
			"  kubectl kustomize config/default | " + a.Program + " crd check -f -\n\n" +
			"  # In a pipeline that shows findings at the file, as GitHub code scanning does\n" +
			"  " + a.Program + " crd check -f config/crd -o sarif > godwit.sarif\n\n" +
			"  # Check a release of another project before you install it, for a script\n" +
			"  " + a.Program + " crd check -f release.yaml -o json\n\n" +
			"  # Skip releases: write the steps to this one, and run them\n" +
			"  " + a.Program + " crd check -f cert-manager-v1.15.0.yaml --steps=steps && sh steps/bridge.sh\n\n" +
			"  # Which of these releases has to run in between?\n" +
			"  " + a.Program + " crd check -f v3.yaml --between=v1.yaml --between=v2.yaml\n\n" +
			"  # The pages for users and developers of a provider, with what the authors know\n" +
			"  " + a.Program + " crd check -f new.yaml --previous=old.yaml --answer=spec.forProvider.owner=ExternalState -o markdown",
		ValidArgsFunction: completeRelease,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return o.compare(c, args)
			case len(o.previous) > 0:
				return o.advise(c)
			}
			return o.check(c, o.exitCode)
		},
	}
	o.next.AddTo(c, "the CRDs of the next release")
	c.Flags().StringVar(&o.steps, "steps", "", "write the steps to the next release into this `directory`; it must be empty or not exist")
	_ = c.MarkFlagDirname("steps")
	o.addStepsTo(c)
	addFiles(c, &o.previous, "previous", "`file` or directory with the CRDs of the previous release, to compare with instead of a cluster; repeat the flag for several")
	frame.AddReferences(c, &o.references)
	o.output.AddFindingsTo(c, crdreport.CheckList(nil))
	return c
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return frame.Usagef("specify files with -f: %s", c.CommandPath()+" -f "+strings.Join(args, " -f "))
	}
	return nil
}

// check compares the release with the cluster. exitCode returns the exit code of the command.
func (o *options) check(c *cobra.Command, exitCode func(all []release, written bool) frame.Code) error {
	ctx := c.Context()
	all, err := o.releases(c)
	if err != nil {
		return err
	}
	if err := checkEmpty(o.steps); err != nil {
		return err
	}
	s, err := o.connect(ctx, all)
	if err != nil {
		return err
	}
	if err := s.observe(ctx, all); err != nil {
		return err
	}
	if err := s.observeReferences(ctx, all, o.references); err != nil {
		return err
	}
	written, err := o.writeSteps(all)
	if err != nil {
		return err
	}
	if err := o.print(items(all, o.Remedies(), o.nextCommand(written), s.forbidden(ctx))); err != nil {
		return err
	}
	if o.steps != "" {
		o.Console.Printf("%s\n", o.stepsSentence(all, written))
	}
	return frame.Exit(exitCode(all, written))
}
