package demo

import (
	"bytes"
	"context"
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

// endTimeout is the time that an interrupted command has to finish its writes and to save its
// checkpoint, before it is killed.
const endTimeout = 10 * time.Second

// program runs godwit.
type program struct {
	path       string // of the binary
	typed      string // what the user types for it
	kubeconfig string
	teller     *teller
	errOut     io.Writer
	code       int // of the last command
}

// show prints a command line, runs it, prints its output and claims its exit code. It returns
// the output, with stderr unless that is a terminal.
func (p *program) show(ctx context.Context, code int, args ...string) (string, error) {
	out := &indented{teller: p.teller}
	if err := p.run(ctx, out, out, args); err != nil {
		return "", err
	}
	return out.copy.String(), claim(p.teller, "exit code", p.code, code)
}

// showForScript is show for a command whose stdout is to be decoded.
func (p *program) showForScript(ctx context.Context, code int, args ...string) ([]byte, error) {
	var stdout bytes.Buffer
	if err := p.run(ctx, &stdout, &indented{teller: p.teller}, args); err != nil {
		return nil, err
	}
	p.teller.say("%s", bytes.TrimSuffix(stdout.Bytes(), []byte("\n")))
	return stdout.Bytes(), claim(p.teller, "exit code", p.code, code)
}

func (p *program) run(ctx context.Context, stdout, stderr io.Writer, args []string) error {
	p.teller.say("$ %s", commandLine(append([]string{p.typed}, args...)))
	command := exec.CommandContext(ctx, p.path, args...)
	command.Args[0] = p.typed
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

// commandLine is what a user types for a command.
func commandLine(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote.Shell(word)
	}
	return strings.Join(quoted, " ")
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
