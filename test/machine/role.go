package machine

import (
	"context"
	"os"
	"os/exec"
)

// roleVariable tells a process of the test's program what it is. The process that go test starts does not have it.
const roleVariable = "GODWIT_TEST_MACHINE"

// folderVariable has the machine's folder.
const folderVariable = "GODWIT_TEST_MACHINE_FOLDER"

// The roles.
const (
	roleInit  = "init"  // the first process of the machine
	roleSweep = "sweep" // outside the machine, removes what the kernel leaves
	roleTest  = "test"  // in the machine, runs the tests
)

// Folder returns the folder of the machine in which this process runs. It is removed with the machine.
func Folder() string { return os.Getenv(folderVariable) }

// again is the command that runs this program in another role, with the same arguments.
func again(ctx context.Context, role, folder string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program, os.Args[1:]...)
	command.Env = append(os.Environ(), roleVariable+"="+role, folderVariable+"="+folder)
	return command, nil
}
