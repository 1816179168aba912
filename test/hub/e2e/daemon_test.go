package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/godwit-dev/godwit/test/process"
)

// daemon is a process of Godwit, which a test may kill and start again.
type daemon struct {
	name    string
	program string
	args    []string
	// log is the file with all that the process has printed, over all its lives.
	log     string
	process *process.Process
}

func (d *daemon) start() error {
	out, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", d.name, err)
	}
	defer func() { _ = out.Close() }() // the process has its own
	command := exec.Command(d.program, d.args...)
	command.Stdout, command.Stderr = out, out
	d.process, err = process.Start(d.name, command)
	return err
}

// stop ends the process. A process that has ended by itself is an error.
func (d *daemon) stop() error {
	if d.process == nil {
		return nil
	}
	if err := d.process.Stop(); err != nil {
		return fmt.Errorf("%w%s", err, process.Tail(d.log))
	}
	return nil
}

// kill ends the process by SIGKILL and starts another one.
func (d *daemon) kill(t *testing.T) {
	t.Helper()
	if d.process.Ended() {
		t.Fatalf("%s has ended by itself%s", d.name, process.Tail(d.log))
	}
	if err := d.process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
}
