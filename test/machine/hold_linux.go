package machine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/godwit-dev/godwit/test/process"
)

// holding is how the line begins by which a test that calls Hold names its machine.
const holding = "holding "

// Hold names this machine to the process that started it by StartHeld, and waits to be killed.
func Hold() {
	_, _ = fmt.Fprintln(os.Stdout, holding+Folder())
	select {}
}

// Held is a machine within this one, whose test waits in Hold.
type Held struct {
	Folder  string
	command *exec.Cmd
}

// StartHeld runs TestHold of this program on a machine of its own, with an environment variable that tells that test to do something.
// log gets each line that it prints until it calls Hold.
func StartHeld(ctx context.Context, variable string, log func(line string)) (*Held, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h := &Held{command: exec.CommandContext(ctx, program, "-test.run=^TestHold$", "-test.v")}
	h.command.Env = append(os.Environ(), variable+"=1")
	h.command.Stderr = os.Stderr
	out, err := h.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := h.command.Start(); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if folder, found := strings.CutPrefix(lines.Text(), holding); found {
			h.Folder = folder
			return h, nil
		}
		log(lines.Text())
	}
	return nil, errors.Join(errors.New("TestHold ended before it called Hold"), h.command.Wait())
}

// Kill kills the process of the test, as a user or the kernel may, and waits until nothing of the machine is left.
func (h *Held) Kill(ctx context.Context) error {
	if err := h.command.Process.Kill(); err != nil {
		return err
	}
	_ = h.command.Wait() // killed
	return process.Poll(ctx, "the machine to leave nothing", func(context.Context) error {
		there, err := Remains(h.Folder)
		if err == nil && len(there) > 0 {
			err = fmt.Errorf("there is %q", there)
		}
		return err
	})
}
