package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
)

// longest is the time after which a command is ended.
const longest = 15 * time.Minute

// record runs a command on a terminal, and records its output. It returns an error if the command fails.
func record(ctx context.Context, cols, rows int, program string, args ...string) (cast, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	typed := strings.Join(append([]string{filepath.Base(program)}, args...), " ")
	c := cast{header: header{Version: 2, Width: cols, Height: rows, Title: typed, Env: map[string]string{"TERM": "xterm-256color"}}}
	command := exec.CommandContext(ctx, program, args...)
	command.Args[0] = filepath.Base(program)
	command.Env = environment(c.header.Env)
	screen, err := pty.StartWithSize(command, &pty.Winsize{Rows: uint16(rows), Cols: uint16(cols)}) //nolint:gosec // flags of a user, below 1,000
	if err != nil {
		return c, fmt.Errorf("run %s on a terminal: %w", typed, err)
	}
	began := time.Now()
	c.events = []event{{0, "$ " + typed + "\r\n"}}
	r := recorder{add: func(text string) { c.events = append(c.events, event{time.Since(began), text}) }}
	// Reading a terminal fails when the command closes it, and on Linux perhaps before its last output is read.
	for range 2 {
		_, _ = io.Copy(&r, screen)
	}
	err = errors.Join(command.Wait(), screen.Close())
	if err != nil {
		return c, fmt.Errorf("%s failed, so nothing is written: %w. Its last output: %s", typed, err, c.last())
	}
	return c, nil
}

// environment returns the environment of this process, for a terminal with colours.
func environment(terminal map[string]string) (env []string) {
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); name != "NO_COLOR" && terminal[name] == "" {
			env = append(env, e)
		}
	}
	for name, value := range terminal {
		env = append(env, name+"="+value)
	}
	return env
}

// last returns the last line of the output.
func (c cast) last() string {
	var all strings.Builder
	for _, e := range c.events {
		all.WriteString(e.text)
	}
	text := strings.TrimSpace(all.String())
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// recorder passes whole characters to add, because a read may end within a character.
type recorder struct {
	add  func(string)
	rest []byte
}

func (r *recorder) Write(p []byte) (int, error) {
	r.rest = append(r.rest, p...)
	whole := len(r.rest)
	for n := 1; n <= min(utf8.UTFMax, len(r.rest)); n++ {
		if b := r.rest[len(r.rest)-n]; utf8.RuneStart(b) {
			if !utf8.FullRune(r.rest[len(r.rest)-n:]) {
				whole -= n
			}
			break
		}
	}
	if whole > 0 {
		r.add(string(r.rest[:whole]))
		r.rest = append(r.rest[:0], r.rest[whole:]...)
	}
	return len(p), nil
}
