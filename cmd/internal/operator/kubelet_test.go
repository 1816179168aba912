package operator

import (
	"bytes"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// A kubelet restarts a container after these, doubling (restartPolicy: Always).
	firstRestart = 10 * time.Second
	maxRestart   = 5 * time.Minute
)

// kubelet keeps a manager running: one that ends is started again.
type kubelet struct {
	t       *testing.T
	command func() *exec.Cmd
	stop    chan struct{}
	stopped chan struct{}

	mu       sync.Mutex
	running  *exec.Cmd
	restarts int
	stderr   bytes.Buffer // of all of them, to be read once stopped
}

// keepManaging starts a manager under a kubelet. It ends with the test.
func (c *cluster) keepManaging(user *rest.Config, configuration string, env ...string) *kubelet {
	c.t.Helper()
	k := &kubelet{t: c.t, command: c.command(user, configuration, env...), stop: make(chan struct{}), stopped: make(chan struct{})}
	go k.keep()
	c.t.Cleanup(func() {
		k.end()
		if c.t.Failed() {
			c.t.Log(k.stderr.String())
		}
	})
	return k
}

func (k *kubelet) keep() {
	defer close(k.stopped)
	for pause := firstRestart; k.run(); pause = min(2*pause, maxRestart) {
		select {
		case <-k.stop:
			return
		case <-time.After(pause):
		}
		k.mu.Lock()
		k.restarts++
		k.mu.Unlock()
	}
}

// run is one life of the manager, and reports whether another follows.
func (k *kubelet) run() bool {
	command := k.command()
	command.Stderr = &k.stderr
	k.mu.Lock()
	err := command.Start()
	k.running = command
	k.mu.Unlock()
	if err != nil {
		k.t.Error(err)
		return false
	}
	ended := make(chan struct{})
	go func() { _ = command.Wait(); close(ended) }()
	select {
	case <-ended:
		return true
	case <-k.stop:
		_ = command.Process.Signal(syscall.SIGTERM)
		<-ended
		return false
	}
}

// end stops the manager and returns how often it was restarted, and what it said.
// Again, it does nothing.
func (k *kubelet) end() (restarts int, said string) {
	select {
	case <-k.stop:
	default:
		close(k.stop)
	}
	<-k.stopped
	return k.restarts, k.stderr.String()
}
