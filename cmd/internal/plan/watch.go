package plan

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
)

// watchEvery is the pause between two plans: a plan of 300 CRDs takes seconds of the API server's time.
const watchEvery = 10 * time.Second

// clearScreen moves the cursor to the first line and removes what is below.
const clearScreen = "\x1b[H\x1b[J"

// watch shows one plan after the other on a terminal, until the user ends it. A plan that the user
// interrupts is not shown: the one before it is complete.
func (o *planOptions) watch(ctx context.Context, apps []*frame.App) error {
	for {
		l := o.read(ctx, apps)
		if ctx.Err() != nil {
			return frame.Exit(frame.ContextCode(ctx))
		}
		if err := o.show(l); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return frame.Exit(frame.ContextCode(ctx))
		case <-time.After(watchEvery):
		}
	}
}

// show writes a plan at once, so that the terminal does not flicker.
func (o *planOptions) show(l planreport.PlanList) error {
	var text bytes.Buffer
	text.WriteString(clearScreen)
	if err := o.output.write(&text, o.Style(o.Streams.Out, o.output.Output), l); err != nil {
		return err
	}
	text.WriteString("\nread at " + l.Time.Local().Format(time.TimeOnly) + "; again every " + watchEvery.String() + "; Ctrl-C ends\n")
	_, err := io.Copy(o.Streams.Out, &text)
	return err
}
