package plan

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// outputFlags are the flags for the format and the destination of the plan.
type outputFlags struct {
	frame.Output
	file string
}

func (o *outputFlags) addTo(c *cobra.Command, empty planreport.PlanList) {
	o.AddReportTo(c, empty)
	c.Flags().StringVar(&o.file, "file", "", "write the output to this `FILE` (default: stdout)")
}

// check checks that the file can be written, before the command reads a cluster.
func (o *outputFlags) check() error {
	if o.file == "" {
		return nil
	}
	probe, err := os.CreateTemp(filepath.Dir(o.file), ".godwit-*")
	if err == nil {
		_ = probe.Close()
		err = os.Remove(probe.Name())
	}
	if info, statErr := os.Stat(o.file); err == nil && statErr == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory", o.file)
	}
	if err != nil {
		return &frame.ActionableError{Message: fmt.Sprintf("--file=%s can't be written: %v", o.file, err), Remedy: "name a file in a directory that exists and that you may write to", Cause: err}
	}
	return nil
}

// deliver writes the plan to stdout, or to the file as a whole.
func (o *outputFlags) deliver(a *frame.App, l planreport.PlanList) error {
	if more := planreport.LeftOut(l.Items); o.Value == "name" && more > 0 {
		a.Console.Printf("%s not named\n", render.Count(more, "more object is", "more objects are"))
	}
	if o.file == "" {
		return o.write(a.Streams.Out, a.Style(a.Streams.Out, o.Output), l)
	}
	var text bytes.Buffer
	if err := o.write(&text, render.Style{Wide: o.Value == "wide"}, l); err != nil {
		return err
	}
	if err := frame.WriteFile(o.file, text.Bytes()); err != nil {
		return fmt.Errorf("write --file=%s: %w", o.file, err)
	}
	a.Console.Printf("%s\nwritten to %s\n", planreport.Sum(l.Items), o.file)
	return nil
}

func (o *outputFlags) write(w io.Writer, s render.Style, l planreport.PlanList) error {
	return frame.WriteDocument(w, o.Output, l, planreport.ToDo(l.Items), func(w io.Writer) error {
		switch o.Value {
		case frame.Markdown:
			return planreport.WriteMarkdown(w, l)
		case frame.HTML:
			return planreport.WriteHTML(w, l)
		}
		return planreport.WriteText(w, s, l)
	})
}
