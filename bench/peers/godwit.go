package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/godwit-dev/godwit/bench/internal/widget"
)

// godwit is `godwit crd run`.
type godwit struct {
	env
	write  string
	settle string // empty: its default
}

func (g godwit) name() string { return "godwit-" + strings.ToLower(g.write) }

func (g godwit) prepare(_ context.Context, r *widget.Resource) (migration, error) {
	return &godwitRun{godwit: g, crd: r.CRD()}, nil
}

type godwitRun struct {
	godwit
	crd      string
	child    *child
	reported bool // the child has ended, and its result was returned
}

func (m *godwitRun) begin(context.Context) error {
	args := []string{"crd", "run", m.crd, "--yes", "--write=" + m.write, "-o", "json"}
	if m.settle != "" {
		args = append(args, "--settle="+m.settle)
	}
	var err error
	m.child, err = start(m.frame, m.name(), m.cluster.Command(args...))
	m.reported = false
	return err
}

// wait runs the command again if it ended in an earlier call, because the message of a failed run tells the user to do so.
func (m *godwitRun) wait(ctx context.Context) (string, error) {
	if m.reported {
		if err := m.begin(ctx); err != nil {
			return "", err
		}
	}
	code, err := m.child.AwaitExit(ctx)
	if err != nil {
		return lastLine(m.child.Log), err
	}
	m.reported = true
	var list struct {
		Items []struct {
			Result  string `json:"result"`
			Trimmed bool   `json:"trimmed"`
			Objects struct {
				Failed int64 `json:"failed"`
			} `json:"objects"`
		} `json:"items"`
	}
	if err := json.Unmarshal(m.child.stdout.text.Bytes(), &list); err != nil || len(list.Items) != 1 {
		return "", fmt.Errorf("godwit ended with exit code %d%s", code, m.child.tail())
	}
	item := list.Items[0]
	return fmt.Sprintf("exit code %d, %s, %d failed", code, item.Result, item.Objects.Failed), nil
}

// lastLine returns the last line of a log, without the name of the CRD.
func lastLine(log string) string {
	text, _ := os.ReadFile(log)
	text = bytes.TrimSpace(text)
	line := string(text[bytes.LastIndexByte(text, '\n')+1:])
	if _, after, found := strings.Cut(line, ": "); found {
		return after
	}
	return line
}

func (m *godwitRun) kill() error { return m.child.Crash() }

func (m *godwitRun) close(context.Context) error { return m.child.end() }
