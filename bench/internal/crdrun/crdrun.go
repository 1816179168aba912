// Package crdrun runs `godwit crd run` as a user would, and measures it from
// outside.
package crdrun

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// Command is `godwit crd run` on one CRD.
type Command struct {
	binary   string
	resource *widget.Resource
	dir      string
}

// Report is the part of the command's JSON that is measured, and what only its
// parent sees.
type Report struct {
	Objects struct {
		Migrated int64 `json:"migrated"`
		Skipped  int64 `json:"skipped"`
	} `json:"objects"`
	Requests int64 `json:"requests"`
	Trimmed  bool  `json:"trimmed"`

	Took    time.Duration `json:"-"`
	PeakRSS int64         `json:"-"` // bytes
}

// New prepares the command; Close removes what that took.
func New(binary string, r *widget.Resource) (*Command, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "godwit-bench-")
	if err != nil {
		return nil, err
	}
	c := &Command{binary: binary, resource: r, dir: dir}
	return c, controlplane.WriteKubeconfig(c.kubeconfig(), r.Config())
}

func (c *Command) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// Close removes the command's files.
func (c *Command) Close() { _ = os.RemoveAll(c.dir) }

// Run starts the command as a user would and times it as a whole: start,
// planning, lists and trim included.
func (c *Command) Run(ctx context.Context, flags ...string) (Report, error) {
	args := append([]string{"crd", "run", c.resource.CRD(), "--yes", "--settle=0s", "-o", "json"}, flags...)
	cmd := exec.CommandContext(ctx, c.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begun := time.Now()
	err := cmd.Run()
	took := time.Since(begun)
	if err != nil {
		return Report{}, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	var list struct {
		Items []Report `json:"items"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &list); err != nil {
		return Report{}, fmt.Errorf("read the report: %w\n%s", err, stdout.String())
	}
	if len(list.Items) != 1 {
		return Report{}, fmt.Errorf("want one report, got %d:\n%s", len(list.Items), stdout.String())
	}
	r := list.Items[0]
	r.Took = took
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.PeakRSS = usage.Maxrss * 1024 // Linux counts in KiB
	}
	return r, c.resource.MustBeMigrated(ctx)
}
