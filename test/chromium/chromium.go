// Package chromium opens pages in headless Chromium, for tests of HTML reports and of the documentation.
//
// It uses the DevTools protocol over a pair of pipes, for which the standard library is enough: the
// libraries for it have a type for each of a thousand commands, and take minutes to compile.
//
// Read chromium.go, then page.go, then tab.go, which is for tests.
package chromium

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/godwit-dev/godwit/test/process"
)

// removeTimeout is how long the browser's processes may take to end once they are killed.
const removeTimeout = 5 * time.Second

// Names of the program, the first of which is Debian's.
var names = []string{"chromium", "chromium-browser", "google-chrome"}

// ErrMissing is the error on a machine without Chromium.
var ErrMissing = errors.New("no Chromium in PATH: apt-get install chromium")

// Browser is a process of Chromium.
type Browser struct {
	command *exec.Cmd
	profile string
	out     *os.File // to the browser
	in      *os.File // from it

	mu      sync.Mutex
	last    int
	answers map[int]chan answer
	events  map[string]chan struct{} // closed when the event comes
	loads   map[string][]string      // URLs that the pages of a session have requested
	ended   error
}

// answer is a message of the browser.
type answer struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
	SessionID string          `json:"sessionId"`
	Params    json.RawMessage `json:"params"`
}

// Start starts a browser that ends with the context.
func Start(ctx context.Context) (*Browser, error) {
	program := ""
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		return nil, ErrMissing
	}
	profile, err := os.MkdirTemp("", "godwit-chromium-")
	if err != nil {
		return nil, err
	}
	// A container has no user namespaces for the sandbox and little shared memory. The pages are ours.
	b := &Browser{profile: profile, answers: map[int]chan answer{}, events: map[string]chan struct{}{}, loads: map[string][]string{}}
	b.command = exec.CommandContext(ctx, program, "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
		"--no-first-run", "--disable-background-networking", "--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	b.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	b.command.Cancel = b.kill
	return b, errors.Join(b.pipe(), b.command.Start(), b.listen())
}

// pipe gives the browser its end of the pipes, as file descriptors 3 and 4.
func (b *Browser) pipe() error {
	itsIn, out, err := os.Pipe()
	if err != nil {
		return err
	}
	in, itsOut, err := os.Pipe()
	if err != nil {
		return err
	}
	b.out, b.in = out, in
	b.command.ExtraFiles = []*os.File{itsIn, itsOut}
	return nil
}

// listen reads messages until the browser ends.
func (b *Browser) listen() error {
	for _, its := range b.command.ExtraFiles {
		if err := its.Close(); err != nil {
			return err
		}
	}
	go func() {
		messages := bufio.NewReader(b.in)
		for {
			text, err := messages.ReadBytes(0)
			if err != nil {
				b.end(fmt.Errorf("chromium has ended: %w", err))
				return
			}
			var a answer
			if err := json.Unmarshal(text[:len(text)-1], &a); err != nil {
				b.end(err)
				return
			}
			b.receive(a)
		}
	}()
	return nil
}

func (b *Browser) receive(a answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.ID != 0 {
		b.answers[a.ID] <- a
		delete(b.answers, a.ID)
		return
	}
	if a.Method == "Network.requestWillBeSent" {
		var sent struct {
			Request struct {
				URL string `json:"url"`
			} `json:"request"`
		}
		if json.Unmarshal(a.Params, &sent) == nil {
			b.loads[a.SessionID] = append(b.loads[a.SessionID], sent.Request.URL)
		}
	}
	key := a.SessionID + " " + a.Method
	if waiting, ok := b.events[key]; ok {
		close(waiting)
		delete(b.events, key)
	}
}

func (b *Browser) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = err
	for id, waiting := range b.answers {
		close(waiting)
		delete(b.answers, id)
	}
}

// call sends a command and returns the result.
func (b *Browser) call(ctx context.Context, session, method string, params, result any) error {
	b.mu.Lock()
	if b.ended != nil {
		defer b.mu.Unlock()
		return b.ended
	}
	b.last++
	id, waiting := b.last, make(chan answer, 1)
	b.answers[id] = waiting
	text, err := json.Marshal(struct {
		ID        int    `json:"id"`
		Method    string `json:"method"`
		Params    any    `json:"params,omitempty"`
		SessionID string `json:"sessionId,omitempty"`
	}{id, method, params, session})
	if err == nil {
		_, err = b.out.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case a, ok := <-waiting:
		switch {
		case !ok:
			return fmt.Errorf("%s: chromium has ended", method)
		case a.Error != nil:
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(a.Result, result)
	}
}

// expect returns a channel that is closed at the next event of a session.
func (b *Browser) expect(session, event string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting := make(chan struct{})
	b.events[session+" "+event] = waiting
	return waiting
}

// forget begins the list of requests of a session again.
func (b *Browser) forget(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.loads, session)
}

// Close ends the browser and removes its profile.
func (b *Browser) Close(ctx context.Context) error {
	_ = b.kill()
	_ = b.command.Wait() // its exit code says that it was killed
	return errors.Join(b.out.Close(), b.in.Close(), b.removeProfile(ctx))
}

// kill ends the browser with the processes that it has started, which are in its group.
func (b *Browser) kill() error { return syscall.Kill(-b.command.Process.Pid, syscall.SIGKILL) }

// removeProfile tries several times: a process of the group may write until it is gone, a moment after the signal.
func (b *Browser) removeProfile(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	return process.Poll(ctx, "the end of Chromium's processes", func(context.Context) error { return os.RemoveAll(b.profile) })
}
