// Package evidence has the command that gathers the output of other commands into a report of a
// migration: `godwit report`. It uses no cluster.
//
// Read evidence.go, then files.go.
package evidence

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/evidence/evidencereport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

type reportOptions struct {
	*frame.App
	from, to string
	output   frame.Output
}

// Command is `godwit report`.
func Command(a *frame.App) *cobra.Command {
	o := &reportOptions{App: a}
	c := &cobra.Command{
		Use:   "report -f DIR [--output-dir=DIR]",
		Short: "Gather the evidence of a migration: a page for each cluster",
		Long: "Gather the output that commands wrote with -o json into a directory, and write a page for a browser\n" +
			"and a JSON file for each cluster: what was to do before, what the runs did, what is proven, and what\n" +
			"is left. The command uses no cluster.\n\n" +
			"A folder of the directory is a cluster. A plan of several clusters, which `" + a.Program + " plan` writes, may be\n" +
			"beside the folders. Files count in the order of their names: begin the names with numbers. The first\n" +
			"plan is the state before, and the last document about an object is the state after.\n\n" +
			"It reads the output of plan, crd plan, run, verify, check, rescue and doctor, resource plan, run and\n" +
			"verify, revision plan and run, externalname plan and apply, cluster plan and status, and version.\n" +
			"It names each file that it can't read. Each document has the time at which its command began; for one\n" +
			"without, the report has the time of the file, and says so.\n\n" +
			"Exit codes: 0 all migrations are complete; 1 some are not; 4 a file could not be read; 2 error.",
		Example: "  # From the folders canary and east of the directory evidence\n" +
			"  " + a.Program + " report -f evidence --output-dir=pages",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.parse(c); err != nil {
				return err
			}
			return o.run()
		},
	}
	flags := c.Flags()
	frame.AddFilename(c, &o.from, "`DIR` with the output of commands")
	flags.StringVar(&o.to, "output-dir", "", "`DIR` for the pages, which is created (default: the name of the directory and -report)")
	for _, flag := range []string{"filename", "output-dir"} {
		_ = c.MarkFlagDirname(flag)
	}
	o.output.AddTo(c, evidencereport.List(nil))
	return c
}

func (o *reportOptions) parse(c *cobra.Command) error {
	if err := frame.NoArguments(c, c.Flags().Args()); err != nil {
		return frame.Usage(err)
	}
	if o.from == "" {
		return frame.Usagef("specify -f DIR: the directory with the output that commands wrote with -o json")
	}
	o.from = filepath.Clean(o.from)
	if o.to == "" {
		o.to = o.from + "-report"
	}
	if o.to = filepath.Clean(o.to); o.to == o.from || strings.HasPrefix(o.to, o.from+string(filepath.Separator)) {
		return frame.Usagef("--output-dir=%s is within the directory of -f, so that the next report would read the pages: choose another directory", o.to)
	}
	return nil
}

func (o *reportOptions) run() error {
	files, err := read(o.from)
	if err != nil {
		return err
	}
	reports := evidencereport.Gather(files)
	if len(reports) == 0 {
		return &frame.ActionableError{Reason: render.ReasonNotFound, Message: "the directory " + o.from + " has no file", Remedy: "write the output of commands into it, such as: " + o.Program + " plan -o json --file=" + filepath.Join(o.from, "1-plan.json")}
	}
	pages, err := o.write(reports)
	if err != nil {
		return err
	}
	if err := frame.Print(o.App, o.output, evidencereport.List(reports), evidencereport.WriteText); err != nil {
		return err
	}
	for _, page := range pages {
		o.Console.Printf("written: %s\n", page)
	}
	return frame.Exit(codeOf(reports))
}

// write writes the files of each cluster, and returns the names of the pages.
func (o *reportOptions) write(reports []evidencereport.Report) ([]string, error) {
	const folder = 0o755
	if err := os.MkdirAll(o.to, folder); err != nil {
		return nil, &frame.ActionableError{Message: fmt.Sprintf("--output-dir=%s can't be created: %v", o.to, err), Remedy: "name a directory that you may write to", Cause: err}
	}
	names := fileNames(reports)
	pages := make([]string, len(reports))
	for i, r := range reports {
		var page, data bytes.Buffer
		if err := evidencereport.WriteHTML(&page, r); err != nil {
			return nil, err
		}
		if err := render.Encode(&data, r); err != nil {
			return nil, err
		}
		pages[i] = filepath.Join(o.to, names[i]+".html")
		for path, text := range map[string][]byte{pages[i]: page.Bytes(), filepath.Join(o.to, names[i]+".json"): data.Bytes()} {
			if err := frame.WriteFile(path, text); err != nil {
				return nil, &frame.ActionableError{Message: fmt.Sprintf("%s can't be written: %v", path, err), Remedy: "name a directory that you may write to with --output-dir", Cause: err}
			}
		}
	}
	return pages, nil
}

func codeOf(reports []evidencereport.Report) frame.Code {
	code := frame.OK
	for _, r := range reports {
		switch {
		case len(r.Unread) > 0:
			code = frame.Worst(code, frame.Partial)
		case r.Result != evidencereport.Complete:
			code = frame.Worst(code, frame.Pending)
		}
	}
	return code
}
