package machine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
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

// Shell starts the program of a held machine, and waits for it as go test does. It is for StartHeld.
var Shell = []string{"sh", "-c", `"$@"; exit $?`, "sh"}

// StartHeld runs TestHold of this program on a machine of its own, with an environment variable that tells that test to do something.
// log gets each line that it prints until it calls Hold. A further command, if there is one, starts the program: Kill kills that command.
func StartHeld(ctx context.Context, variable string, log func(line string), starter ...string) (*Held, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := append(slices.Clone(starter), program, "-test.run=^TestHold$", "-test.v")
	h := &Held{command: exec.CommandContext(ctx, args[0], args[1:]...)}
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

// Kill kills the process that StartHeld has started, as a user or the kernel may, and waits until nothing of the machine is left.
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
