package cli

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"github.com/godwit-dev/godwit/cmd/internal/report"
)

// console is stderr. A progress bar that is being drawn shares it with
// whatever else has to be said.
type console struct {
	out io.Writer
	// terminal: bars can be drawn.
	terminal bool
	color    bool

	mu    sync.Mutex
	above io.Writer // writes above the bar; nil without one
}

func newConsole(out io.Writer) *console {
	return &console{out: out, terminal: isTerminal(out) && os.Getenv("TERM") != "dumb", color: hasColor(out)}
}

// isTerminal is about readers as well as writers.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// hasColor follows no-color.org.
func hasColor(stream any) bool {
	return isTerminal(stream) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

func (a *app) style(stream any, f format) report.Style {
	return report.Style{Color: hasColor(stream), Wide: f.value == "wide", Flags: a.clusterFlags()}
}

// Write never splits a line that is being written by somebody else.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.above != nil {
		if n, err := c.above.Write(p); err == nil {
			return n, nil
		}
	}
	return c.out.Write(p)
}

// share makes room above a bar; nil takes the room back.
func (c *console) share(above io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.above = above
}

// printf ignores that stderr may be gone: there is nowhere left to say so.
func (c *console) printf(format string, args ...any) { _, _ = fmt.Fprintf(c, format, args...) }

func (c *console) problem(err error) { c.printf("error: %v\n", err) }
