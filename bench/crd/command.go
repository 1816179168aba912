package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/godwit-dev/godwit/test/controlplane"
)

// command is `godwit crd run` on one definition.
type command struct {
	binary string
	w      *widgets
	dir    string
}

// report is the part of the command's JSON that is measured, and what only its
// parent sees.
type report struct {
	Objects struct {
		Migrated int64 `json:"migrated"`
		Skipped  int64 `json:"skipped"`
	} `json:"objects"`
	Requests int64 `json:"requests"`
	Trimmed  bool  `json:"trimmed"`

	took    time.Duration
	peakRSS int64 // bytes
}

func newCommand(binary string, w *widgets) (*command, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "godwit-bench-")
	if err != nil {
		return nil, err
	}
	c := &command{binary: binary, w: w, dir: dir}
	return c, controlplane.WriteKubeconfig(c.kubeconfig(), w.config)
}

func (c *command) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

func (c *command) close() { _ = os.RemoveAll(c.dir) }

// run starts the command as a user would and times it as a whole: start,
// planning, lists and trim included.
func (c *command) run(ctx context.Context, flags ...string) (report, error) {
	args := append([]string{"crd", "run", c.w.definition(), "--yes", "--settle=0s", "-o", "json"}, flags...)
	cmd := exec.CommandContext(ctx, c.binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begun := time.Now()
	err := cmd.Run()
	took := time.Since(begun)
	if err != nil {
		return report{}, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	var list struct {
		Items []report `json:"items"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &list); err != nil {
		return report{}, fmt.Errorf("read the report: %w\n%s", err, stdout.String())
	}
	if len(list.Items) != 1 {
		return report{}, fmt.Errorf("want one report, got %d:\n%s", len(list.Items), stdout.String())
	}
	r := list.Items[0]
	r.took = took
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.peakRSS = usage.Maxrss * 1024 // Linux counts in KiB
	}
	return r, c.w.mustBeMigrated(ctx)
}

// forwarder counts the bytes between a client and the API server.
type forwarder struct {
	listener net.Listener
	target   string
	bytes    atomic.Int64
}

func newForwarder(ctx context.Context, target string) (*forwarder, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &forwarder{listener: listener, target: strings.TrimPrefix(strings.TrimSuffix(target, "/"), "https://")}
	go f.serve(ctx)
	return f, nil
}

func (f *forwarder) address() string { return f.listener.Addr().String() }

func (f *forwarder) close() { _ = f.listener.Close() }

func (f *forwarder) serve(ctx context.Context) {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := (&net.Dialer{}).DialContext(ctx, "tcp", f.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		go f.forward(client, server)
		go f.forward(server, client)
	}
}

func (f *forwarder) forward(to, from net.Conn) {
	_, _ = io.Copy(to, io.TeeReader(from, counter{&f.bytes}))
	_ = to.Close()
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}
