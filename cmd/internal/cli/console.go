package cli

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"github.com/godwit-dev/godwit/cmd/internal/report"
)

// Console is stderr. A progress bar that is being drawn shares it with
// whatever else has to be said.
type Console struct {
	out io.Writer
	// Terminal: bars can be drawn.
	Terminal bool
	color    bool

	mu    sync.Mutex
	above io.Writer // writes above the bar; nil without one
}

// NewConsole writes to a stream, with a bar and colors if that is a terminal.
func NewConsole(out io.Writer) *Console {
	return &Console{out: out, Terminal: IsTerminal(out) && os.Getenv("TERM") != "dumb", color: hasColor(out)}
}

// IsTerminal is about readers as well as writers.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// hasColor follows no-color.org.
func hasColor(stream any) bool {
	return IsTerminal(stream) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Style is how tables are written to a stream.
func (a *App) Style(stream any, f Output) report.Style {
	return report.Style{Color: hasColor(stream), Wide: f.Value == "wide"}
}

// Write never splits a line that is being written by somebody else.
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

// share makes room above a bar; nil takes the room back.
func (c *Console) share(above io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.above = above
}

// Printf ignores that stderr may be gone: there is nowhere left to say so.
func (c *Console) Printf(format string, args ...any) { _, _ = fmt.Fprintf(c, format, args...) }

// Problem prints an error.
func (c *Console) Problem(err error) { c.Printf("error: %v\n", err) }
