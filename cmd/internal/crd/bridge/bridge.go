// Package bridge has the command `godwit crd bridge`.
//
// Read bridge.go, then files.go, which writes the manifests and the script.
package bridge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/cmd/internal/crd/crdpermission"
	"github.com/godwit-dev/godwit/cmd/internal/crd/crdreport"
	"github.com/godwit-dev/godwit/cmd/internal/crd/manifest"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/crdmigrator/bridge"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

type options struct {
	*frame.App
	next      manifest.Input
	between   []string
	answers   manifest.Answers
	directory string
	output    frame.Output
}

// Command is `godwit crd bridge`.
func Command(a *frame.App) *cobra.Command {
	o := &options{App: a}
	c := &cobra.Command{
		Use:   "bridge -f {FILE|DIR|-}... [-d DIR]",
		Short: "Write the steps from the CRDs of the cluster to those of a release that skips others; changes nothing",
		Long: "Compare the CRDs of the cluster with those of the release that you want to install. Where the API\n" +
			"server would refuse them, because objects may be stored at a version that the release does not\n" +
			"have, write the steps in between into a directory:\n\n" +
			"  Serve     add the version of the release, served\n" +
			"  Store     make it the storage version\n" +
			"  Migrate   rewrite every object at it\n" +
			"  Unserve   stop serving the old versions, and remove them from managedFields\n" +
			"  Remove    remove the old versions\n\n" +
			"Each step is a manifest for each CRD. bridge.sh runs the steps, with kubectl and godwit, and then\n" +
			"checks that the API server accepts the release. A step leaves spec.conversion, labels and\n" +
			"annotations as they are.\n\n" +
			"The command writes no step that loses a field. Objects are converted by the conversion webhook of\n" +
			"the installed release, whose controller has to run until Migrate has ended, or by no webhook, if the\n" +
			"new version has every field of the old one. Otherwise the CRD is Blocked: the message says between\n" +
			"which versions a release in between has to convert. With --between, it names the file.\n\n" +
			"Results: NotNeeded (the API server accepts the CRD as it is), Ready, Blocked.\n" +
			"Exit codes: 0 no steps are needed or the steps are written, 1 steps are needed and --directory is\n" +
			"missing, 3 some CRDs are Blocked and nothing is written, 2 error.",
		Example: "  # Which steps are needed?\n" +
			"  " + a.Program + " crd bridge -f cert-manager-v1.15.0.yaml\n\n" +
			"  # Write them, and run them\n" +
			"  " + a.Program + " crd bridge -f cert-manager-v1.15.0.yaml -d steps && sh steps/bridge.sh\n\n" +
			"  # Which of these releases has to run in between?\n" +
			"  " + a.Program + " crd bridge -f v3.yaml --between=v1.yaml --between=v2.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return frame.Usagef("specify files with -f: %s", a.Program+" crd bridge -f "+strings.Join(args, " -f "))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.next.Parse(c, a.Streams.In); err != nil {
				return err
			}
			return o.run(c)
		},
	}
	flags := c.Flags()
	o.next.AddTo(c, "the CRDs of the next release")
	flags.StringVarP(&o.directory, "directory", "d", "", "`directory` for the manifests and bridge.sh; it must be empty or not exist")
	_ = c.MarkFlagDirname("directory")
	flags.StringArrayVar(&o.between, "between", nil, "`file` with the CRDs of a release that you could install in between; repeat the flag for several")
	_ = c.MarkFlagFilename("between", "yaml", "yml", "json")
	o.answers.AddTo(c)
	o.output.AddTo(c, crdreport.BridgeList(nil))
	return c
}

func (o *options) run(c *cobra.Command) error {
	ctx := c.Context()
	facts, err := o.facts(c)
	if err != nil {
		return err
	}
	if o.directory != "" {
		if err := checkEmpty(o.directory); err != nil {
			return err
		}
	}
	connection, err := o.Dial(ctx, frame.Purpose{Command: crdpermission.Bridge, Scope: namesOf(facts)})
	if err != nil {
		return err
	}
	if err := readLive(ctx, connection, facts); err != nil {
		return err
	}
	if !slices.ContainsFunc(facts, func(f bridge.Facts) bool { return f.Live != nil }) {
		return frame.Refuse(fmt.Errorf("no CRD of %s is on %s, so that there is nothing to bridge: nothing was written", strings.Join(o.next.Files, ", "), connection.Where()))
	}
	bridges := make([]bridge.Bridge, len(facts))
	items := make([]crdreport.Bridge, len(facts))
	for i, f := range facts {
		if bridges[i], err = bridge.For(f); err != nil {
			return err
		}
		items[i] = crdreport.NewBridge(bridges[i], o.Remedies())
	}
	written, err := o.write(bridges, facts)
	if err != nil {
		return err
	}
	if err := frame.Print(o.App, o.output, crdreport.BridgeList(items), crdreport.WriteBridges); err != nil {
		return err
	}
	if written != "" {
		o.Console.Printf("the steps are in %s; run them with: sh %s\n", o.directory, written)
	}
	return frame.Exit(codeOf(bridges, o.directory != ""))
}

// facts reads the files.
func (o *options) facts(c *cobra.Command) ([]bridge.Facts, error) {
	answers, err := o.answers.Parse()
	if err != nil {
		return nil, err
	}
	releases, err := o.next.Read(o.Streams.In)
	if err != nil {
		return nil, err
	}
	var all []bridge.Facts
	for _, r := range releases {
		if r.CRD == nil {
			return nil, frame.Refuse(fmt.Errorf("%s in %s is written in apiextensions.k8s.io/v1beta1, which Kubernetes 1.22 has removed: nothing was written", r.Name, r.Source))
		}
		all = append(all, bridge.Facts{Next: r.CRD, Answers: answers})
	}
	for _, file := range o.between {
		in := manifest.Input{Files: []string{file}}
		if err := in.Parse(c, o.Streams.In); err != nil {
			return nil, err
		}
		releases, err := in.Read(o.Streams.In)
		if err != nil {
			return nil, err
		}
		for _, r := range releases {
			for i := range all {
				if r.CRD != nil && all[i].Next.Name == r.Name {
					all[i].Between = append(all[i].Between, bridge.Release{Name: file, CRD: r.CRD})
				}
			}
		}
	}
	return all, nil
}

func namesOf(facts []bridge.Facts) []string {
	names := make([]string, len(facts))
	for i, f := range facts {
		names[i] = f.Next.Name
	}
	return names
}

// readLive reads the CRDs of the cluster.
func readLive(ctx context.Context, connection *frame.Connection, facts []bridge.Facts) error {
	client, err := kube.NewClient(connection.Config, walk.NewLimiter(walk.Limits{}), clock.RealClock{})
	if err != nil {
		return frame.BadKubeconfig(err)
	}
	for i := range facts {
		var live *apiextensionsv1.CustomResourceDefinition
		name := facts[i].Next.Name
		err := walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) (err error) {
			live, err = client.CRD(ctx, name)
			return err
		})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return connection.Explain(frame.About(ctx, name), fmt.Errorf("read customresourcedefinition %s: %w", name, err))
		default:
			facts[i].Live = live
		}
	}
	return nil
}

func codeOf(bridges []bridge.Bridge, written bool) frame.Code {
	code := frame.OK
	for _, b := range bridges {
		switch {
		case b.Result == bridge.Blocked:
			code = frame.Worst(code, frame.Refused)
		case b.Result == bridge.Ready && !written:
			code = frame.Worst(code, frame.Pending)
		}
	}
	return code
}
