package frame

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// Console is stderr. A progress bar shares it with messages.
type Console struct {
	out io.Writer
	// Terminal means that the console can draw bars.
	Terminal bool
	color    bool

	mu    sync.Mutex
	above io.Writer // writes above the bar; nil without a bar
}

// NewConsole returns a console for a stream, with bars and colours on a terminal.
func NewConsole(out io.Writer) *Console {
	return &Console{out: out, Terminal: IsTerminal(out) && os.Getenv("TERM") != "dumb", color: hasColor(out)}
}

// IsTerminal reports whether a reader or a writer is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// hasColor reports whether a stream shows colours, by the rules of no-color.org, and of bixense.com/clicolors for a stream that another program shows.
func hasColor(stream any) bool {
	forced := os.Getenv("CLICOLOR_FORCE")
	return os.Getenv("NO_COLOR") == "" && (forced != "" && forced != "0" || IsTerminal(stream) && os.Getenv("TERM") != "dumb")
}

// width is the number of columns of a stream; 0 for one that is not a terminal.
func width(stream any) int {
	file, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// Write writes p as a whole: no other goroutine writes within it.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.above != nil {
		if n, err := c.above.Write(p); err == nil {
			return n, nil
		}
	}
	return c.out.Write(p)
}

// writeAbove makes Write write above a bar, with a function of the bar. nil ends this.
func (c *Console) writeAbove(above io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.above = above
}

// Printf ignores errors: if stderr is closed, no stream is left to report them.
func (c *Console) Printf(format string, args ...any) { _, _ = fmt.Fprintf(c, format, args...) }

// Problem prints an error: in one line for a log, and wrapped on a terminal, with its remedy below.
func (c *Console) Problem(err error) {
	style := render.Style{Color: c.color, Width: width(c.out)}
	if style.Width == 0 {
		c.Printf("error: %v\n", err)
		return
	}
	c.Printf("%s", problemText(style, err))
}

// problemText is an error for a terminal: each of several that were joined begins a line.
func problemText(style render.Style, err error) string {
	const indent = 2
	if several, joined := err.(interface{ Unwrap() []error }); joined {
		var text strings.Builder
		for _, one := range several.Unwrap() {
			text.WriteString(problemText(style, one))
		}
		return text.String()
	}
	message, remedy := err.Error(), ""
	if known := (*ActionableError)(nil); errors.As(err, &known) {
		message, remedy = render.CutRemedy(message, known.Remedy)
	}
	lead := render.Cell{Text: "error: "}
	var text strings.Builder
	for line := range strings.SplitSeq(message, "\n") {
		text.WriteString(style.Wrap(lead, indent, line))
		lead.Text = strings.Repeat(" ", indent)
	}
	return text.String() + style.RemedyLines(indent, remedy)
}

const (
	// BarEvery is the time between two drawings of a bar: it looks smooth, and is cheap over ssh.
	BarEvery = 150 * time.Millisecond
	// barWidth leaves space for a name and a few words in 100 columns.
	barWidth = 24
)

// Draw starts a bar, which shares the console until Erase. It calls name and text for each
// drawing.
func (c *Console) Draw(name func() string, total int64, text func() string) (*mpb.Progress, *mpb.Bar) {
	drawn := mpb.New(mpb.WithOutput(c.out), mpb.WithRefreshRate(BarEvery), mpb.WithAutoRefresh())
	bar := drawn.New(0, mpb.BarStyle().Filler("█").Tip("█").Padding("░").Lbound("").Rbound(""),
		mpb.BarWidth(barWidth),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return name() + " " })),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + text() })),
	)
	bar.SetTotal(max(1, total), false) // a total that is given to New can't be changed
	c.writeAbove(drawn)
	return drawn, bar
}

// Erase ends a bar and removes it from the terminal.
func (c *Console) Erase(drawn *mpb.Progress, bar *mpb.Bar) {
	bar.Abort(true)
	drawn.Wait()
	c.writeAbove(nil)
}

// lineEvery shows progress without filling a log.
const lineEvery = 10 * time.Second

// Repeat prints a line each time lineEvery has passed, until stop is called.
func (c *Console) Repeat(line func(time.Time) string) (stop func()) {
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		ticker := time.NewTicker(lineEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-ticker.C:
				c.Printf("%s\n", line(now))
			}
		}
	})
	return func() { close(done); ticking.Wait() }
}
