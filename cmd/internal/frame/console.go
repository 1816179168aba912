package frame

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
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

// hasColor reports whether a stream shows colours, by the rules of no-color.org.
func hasColor(stream any) bool {
	return IsTerminal(stream) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
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

// share lets Write write above a bar. nil ends that.
func (c *Console) share(above io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.above = above
}

// Printf ignores errors: after stderr is closed, no stream is left to report them.
func (c *Console) Printf(format string, args ...any) { _, _ = fmt.Fprintf(c, format, args...) }

// Problem prints an error.
func (c *Console) Problem(err error) { c.Printf("error: %v\n", err) }
