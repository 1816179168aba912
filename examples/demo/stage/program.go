package stage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/godwit-dev/godwit/internal/quote"
)

// Exit codes of godwit that the stories expect.
const (
	ExitOK      = 0
	ExitPending = 1
	ExitBlocked = 3
	ExitPartial = 4
)

// endTimeout is the time that an interrupted command has to finish its writes and to save its
// checkpoint, before it is killed.
const endTimeout = 10 * time.Second

// Program runs a command as a user types it.
type Program struct {
	path       string // of the binary
	Typed      string // the name of the program in a command line
	kubeconfig string
	teller     *Teller
	errOut     io.Writer
	code       int // of the last command
}

// Show prints a command line, runs it, prints its output and claims its exit code. It returns
// the output. The output has stderr as well, unless stderr is a terminal.
func (p *Program) Show(ctx context.Context, code int, args ...string) (string, error) {
	out := &indented{teller: p.teller}
	if err := p.run(ctx, out, out, args); err != nil {
		return "", err
	}
	return out.copy.String(), Claim(p.teller, "exit code", p.code, code)
}

// ShowForScript is like [Program.Show], but returns stdout only, for a script to read.
func (p *Program) ShowForScript(ctx context.Context, code int, args ...string) ([]byte, error) {
	var stdout bytes.Buffer
	if err := p.run(ctx, &stdout, &indented{teller: p.teller}, args); err != nil {
		return nil, err
	}
	p.teller.Paragraph("%s", bytes.TrimSuffix(stdout.Bytes(), []byte("\n")))
	return stdout.Bytes(), Claim(p.teller, "exit code", p.code, code)
}

// ShowJSON is like [Program.Show], but runs the command with -o json, and decodes the output.
func (p *Program) ShowJSON(ctx context.Context, into any, code int, args ...string) error {
	printed, err := p.ShowForScript(ctx, code, append(args, "-o", "json")...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(printed, into); err != nil {
		return Wrong("read what `%s` printed: %w", p.CommandLine(args...), err)
	}
	return nil
}

func (p *Program) run(ctx context.Context, stdout, stderr io.Writer, args []string) error {
	p.teller.Paragraph("$ %s", p.CommandLine(args...))
	command := exec.CommandContext(ctx, p.path, args...)
	command.Args[0] = p.Typed
	command.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig)
	command.Stdout, command.Stderr = stdout, stderr
	if isTerminal(p.errOut) {
		command.Stderr = p.errOut // progress is drawn as bars
	}
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = endTimeout
	err := command.Run()
	var exited *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !errors.As(err, &exited):
		return fmt.Errorf("run %s: %w", p.path, err)
	}
	p.code = command.ProcessState.ExitCode()
	return nil
}

// CommandLine returns the command line that a user types.
func (p *Program) CommandLine(args ...string) string {
	quoted := []string{p.Typed}
	for _, word := range args {
		quoted = append(quoted, quote.Shell(word))
	}
	return strings.Join(quoted, " ")
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
