package howto

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// mark is printed after each command.
const mark = "---- end of command ----"

// shell is one session: a command sees the variables that earlier commands have set.
type shell struct {
	command *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
}

func startShell(ctx context.Context, dir string, env []string) (*shell, error) {
	s := &shell{command: exec.CommandContext(ctx, "sh")}
	s.command.Dir, s.command.Env = dir, env
	var err error
	if s.input, err = s.command.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.output, s.command.Stderr = bufio.NewReader(output), s.command.Stdout
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("start a shell: %w", err)
	}
	return s, nil
}

// run runs a command, and returns what it prints on stdout and stderr. The input of the command is /dev/null, because it would
// read the commands that follow.
func (s *shell) run(command string) (string, error) {
	if _, err := fmt.Fprintf(s.input, "{ %s\n} </dev/null\nprintf '\\n%s\\n'\n", command, mark); err != nil {
		return "", fmt.Errorf("run `%s`: %w", command, err)
	}
	var text strings.Builder
	for {
		line, err := s.output.ReadString('\n')
		if err != nil {
			return "", fmt.Errorf("the shell ends in `%s`: %w\n%s", command, err, &text)
		}
		if line == mark+"\n" {
			return text.String(), nil
		}
		text.WriteString(line)
	}
}

// stop ends the shell, which exits with the code of its last command.
func (s *shell) stop() {
	_ = s.input.Close()
	_ = s.command.Wait()
}
