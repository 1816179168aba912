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
	NoBars     bool   // stderr is output also on a terminal, since the program draws no progress
	kubeconfig string
	teller     *Teller
	errOut     io.Writer
	dir        string // the working directory, with the files that the story names
}

// Show prints a command line, runs it, prints its output and returns it without colours. An exit code other than the expected one ends the
// story. The output has stderr as well, unless stderr is a terminal.
func (p *Program) Show(ctx context.Context, code int, args ...string) (string, error) {
	p.teller.Command(p.CommandLine(args...))
	out := &indented{teller: p.teller}
	err := p.run(ctx, code, out, out, args)
	return colours.ReplaceAllString(out.copy.String(), ""), err
}

// ShowForScript is like [Program.Show], but returns stdout only, for a script to read.
func (p *Program) ShowForScript(ctx context.Context, code int, args ...string) ([]byte, error) {
	p.teller.Command(p.CommandLine(args...))
	var stdout bytes.Buffer
	if err := p.run(ctx, code, &stdout, &indented{teller: p.teller}, args); err != nil {
		return nil, err
	}
	p.teller.Paragraph("%s", bytes.TrimSuffix(stdout.Bytes(), []byte("\n")))
	return stdout.Bytes(), nil
}

// Read runs a command with -o json, which the story does not show, and decodes the output.
func (p *Program) Read(ctx context.Context, into any, code int, args ...string) error {
	args = append(args, "-o", "json")
	var stdout bytes.Buffer
	if err := p.run(ctx, code, &stdout, io.Discard, args); err != nil {
		return err
	}
	if err := json.Unmarshal(stdout.Bytes(), into); err != nil {
		return Wrong("read what `%s` printed: %w", p.CommandLine(args...), err)
	}
	return nil
}

func (p *Program) run(ctx context.Context, code int, stdout, stderr io.Writer, args []string) error {
	command := exec.CommandContext(ctx, p.path, args...)
	command.Args[0], command.Dir = p.Typed, p.dir
	command.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig)
	if p.teller.style {
		command.Env = append(command.Env, "CLICOLOR_FORCE=1") // the story shows what the pipe has
	}
	command.Stdout, command.Stderr = stdout, stderr
	if stderr != io.Discard && !p.NoBars && isTerminal(p.errOut) {
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
	if got := command.ProcessState.ExitCode(); got != code {
		return Wrong("`%s` exits with %d, and it should with %d", p.CommandLine(args...), got, code)
	}
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
