package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// longest is how long a command may run before the script fails.
const longest = 5 * time.Minute

// exits CODE [-at REGEXP [-after DURATION] [-apply FILE]]... COMMAND...: runs a
// command and compares its exit code. When its stderr matches, it gets a signal
// (SIGINT) after the time given, or kubectl applies a file, in which $VARIABLES are replaced.
func exits(ts *testscript.TestScript, args []string) error {
	c, err := parseRun(args)
	if err != nil {
		return err
	}
	if len(c.steps) == 0 {
		return checkCode(ts.Exec(c.argv[0], c.argv[1:]...), c.code)
	}
	out, errs := &bytes.Buffer{}, newWatched(c.steps)
	command := c.command(ts)
	command.Stdout, command.Stderr = out, errs
	for i := range c.steps {
		if file := c.steps[i].apply; file != "" {
			c.steps[i].apply = os.Expand(ts.ReadFile(file), ts.Getenv)
		}
	}
	errs.take = func(s step) error {
		if s.apply != "" {
			return applyText(ts, s.apply)
		}
		_ = command.Process.Signal(os.Interrupt)
		return nil
	}
	err = runWithin(command)
	_, _ = ts.Stdout().Write(out.Bytes())
	_, _ = ts.Stderr().Write(errs.text.Bytes())
	return errors.Join(checkCode(err, c.code), errs.missed())
}

// applyText applies a manifest, also while a command of the script runs.
func applyText(ts *testscript.TestScript, manifest string) error {
	kubectl := commandRun{argv: []string{"kubectl", "apply", "--server-side", "-f", "-"}}.command(ts)
	kubectl.Stdin = strings.NewReader(manifest)
	if said, err := kubectl.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, said)
	}
	return nil
}

// terminal CODE [-columns N] [-at REGEXP [-after DURATION] -send TEXT]... COMMAND...: runs a
// command on a terminal of 120 columns, or as many as it says. When the output matches, the text is
// typed. All that was shown becomes stdout.
func terminal(ts *testscript.TestScript, args []string) error {
	c, err := parseRun(args)
	if err != nil {
		return err
	}
	command := c.command(ts)
	screen, err := pty.StartWithSize(command, &pty.Winsize{Rows: 40, Cols: c.columns})
	if err != nil {
		return err
	}
	defer func() { _ = screen.Close() }()
	shown := newWatched(c.steps)
	shown.take = func(s step) error {
		_, _ = io.WriteString(screen, s.send)
		return nil
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		copyScreen(shown, screen)
	}()
	timer := time.AfterFunc(longest, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	err = command.Wait()
	<-copied
	_, _ = ts.Stdout().Write(shown.text.Bytes())
	return errors.Join(checkCode(err, c.code), shown.missed())
}

// copyScreen copies what a command shows until the command has closed its terminal. Reading
// then fails with EIO, and that may come too early: Linux looks for output first and for
// the end of the terminal afterwards, so that it fails a read although output came between
// the two. No output comes after the end, so that the next read has the rest.
func copyScreen(shown io.Writer, screen io.Reader) {
	for range 2 {
		_, _ = io.Copy(shown, screen)
	}
}

// step is something to do when a pattern appears.
type step struct {
	at    *regexp.Regexp
	after time.Duration
	send  string
	apply string // a file, and its text once the command runs
}

type commandRun struct {
	code    int
	columns uint16
	steps   []step
	argv    []string
}

func parseRun(args []string) (commandRun, error) {
	code, err := strconv.Atoi(args[0])
	c := commandRun{code: code, columns: 120, argv: args[1:]}
	for err == nil && len(c.argv) > 2 && strings.HasPrefix(c.argv[0], "-") {
		value := c.argv[1]
		switch c.argv[0] {
		case "-at":
			c.steps = append(c.steps, step{send: "\x03"})
			c.steps[len(c.steps)-1].at, err = regexp.Compile(value)
		case "-columns":
			var columns uint64
			columns, err = strconv.ParseUint(value, 10, 16)
			c.columns = uint16(columns)
		case "-after":
			c.steps[len(c.steps)-1].after, err = time.ParseDuration(value)
		case "-send":
			c.steps[len(c.steps)-1].send, err = strconv.Unquote(`"` + value + `"`)
		case "-apply":
			c.steps[len(c.steps)-1].apply = value
		default:
			err = fmt.Errorf("unknown option %s", c.argv[0])
		}
		c.argv = c.argv[2:]
	}
	return c, err
}

func (c commandRun) command(ts *testscript.TestScript) *exec.Cmd {
	command := exec.Command(c.argv[0], c.argv[1:]...)
	command.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "KUBECONFIG", "TERM", "NO_COLOR"} {
		if value := ts.Getenv(name); value != "" {
			command.Env = append(command.Env, name+"="+value)
		}
	}
	return command
}

func runWithin(command *exec.Cmd) error {
	if err := command.Start(); err != nil {
		return err
	}
	timer := time.AfterFunc(longest, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	return command.Wait()
}

func checkCode(err error, want int) error {
	code := 0
	var exited *exec.ExitError
	switch {
	case errors.As(err, &exited):
		code = exited.ExitCode()
	case err != nil:
		return err
	}
	if code != want {
		return fmt.Errorf("exit code %d, want %d", code, want)
	}
	return nil
}

// watched collects output and takes one step after the other as it appears.
type watched struct {
	mu    sync.Mutex
	text  bytes.Buffer
	from  int // where the next pattern is looked for
	steps []step
	take  func(step) error
	taken []error // what steps have returned
}

func newWatched(steps []step) *watched { return &watched{steps: steps} }

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	for len(w.steps) > 0 {
		next := w.steps[0]
		found := next.at.FindIndex(w.text.Bytes()[w.from:])
		if found == nil {
			break
		}
		w.from += found[1]
		w.steps = w.steps[1:]
		time.AfterFunc(next.after, func() {
			err := w.take(next)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.taken = append(w.taken, err)
		})
	}
	return len(p), nil
}

func (w *watched) missed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.steps) > 0 {
		return fmt.Errorf("%q did not appear in:\n%s", w.steps[0].at, &w.text)
	}
	return errors.Join(w.taken...)
}

var (
	measured = regexp.MustCompile(`"(requests|durationSeconds)": [0-9.]+`)
	assigned = regexp.MustCompile(`"(uid|retainedUntil)": "[^"]+"`)
)

// dated matches the time of a document.
var dated = regexp.MustCompile(`\n    "time": "([^"]+)",`)

// origin matches the cluster, the user and the program of a document.
var origin = regexp.MustCompile(`\n    "origin": \{[^}]*\},`)

// undated checks that the time of a document is that of its command, and removes it, and the origin.
func undated(ts *testscript.TestScript, text string) (string, error) {
	found := dated.FindStringSubmatch(text)
	if found == nil {
		return "", errors.New("the document has no time")
	}
	at, err := time.Parse(time.RFC3339, found[1])
	if err != nil {
		return "", err
	}
	var offset time.Duration
	if text := ts.Getenv(clockOffset); text != "" {
		if offset, err = time.ParseDuration(text); err != nil {
			return "", err
		}
	}
	if ago := time.Now().Add(offset).Sub(at); ago < 0 || ago > 10*time.Minute {
		return "", fmt.Errorf("the document is from %s, %v ago", at, ago)
	}
	return origin.ReplaceAllString(strings.Replace(text, found[0], "", 1), ""), nil
}

// golden FILE: compares stdout, which is JSON, byte by byte with FILE, in which
// $VARIABLES are replaced. FILE has no time. What else differs from run to run is 0 in FILE, or "-".
func golden(ts *testscript.TestScript, args []string) error {
	got := ts.ReadFile("stdout")
	if !json.Valid([]byte(got)) {
		return fmt.Errorf("stdout is not JSON:\n%s", got)
	}
	got, err := undated(ts, got)
	if err != nil {
		return err
	}
	got = measured.ReplaceAllString(got, `"$1": 0`)
	got = assigned.ReplaceAllString(got, `"$1": "-"`)
	want := os.Expand(ts.ReadFile(args[0]), ts.Getenv)
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("%s differs from stdout (-want +got):\n%s\n%s", args[0], diff, got)
	}
	return nil
}
