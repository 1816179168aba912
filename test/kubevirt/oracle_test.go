package kubevirt_test

import (
	"os"
	"os/exec"
	"testing"

	// Nothing of it is called; importing it makes go test run this test again when the conversion changes.
	_ "github.com/godwit-dev/godwit/revision/kubevirt"
	_ "github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// TestOracle runs the tests of the module that has KubeVirt's own conversions: every
// fixture, and what the fuzzers begin with.
func TestOracle(t *testing.T) {
	for _, args := range [][]string{
		{"mod", "tidy", "-diff"},
		{"vet", "./..."},
		{"test", "-count=1", "./..."},
	} {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir = "testdata/oracle"
		command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s in %s: %v\n%s", command, command.Dir, err, output)
		}
	}
}
