package ocm

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// interval is the time between two passes of a simulated program.
const interval = 200 * time.Millisecond

// loop calls a pass again and again, until it is stopped.
type loop struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// startLoop logs the error of a pass only if it differs from the error of the pass before, so that a hub that does not answer
// does not fill the log.
func startLoop(name string, log io.Writer, pass func(context.Context) error) *loop {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // it outlives the call that starts it
	l := &loop{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		last := ""
		for {
			now := ""
			if err := pass(ctx); err != nil && ctx.Err() == nil {
				now = err.Error()
			}
			if now != last {
				_, _ = fmt.Fprintf(log, "%s %s: %s\n", time.Now().UTC().Format(time.RFC3339Nano), name, now)
			}
			last = now
			select {
			case <-ctx.Done():
				return
			case <-time.After(interval):
			}
		}
	}()
	return l
}

// stop returns when the last pass has ended.
func (l *loop) stop() {
	if l == nil {
		return
	}
	l.cancel()
	<-l.done
}

// logFile is a file to which several parts write.
type logFile struct {
	mu   sync.Mutex
	file *os.File
}

func openLog(path string) (*logFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return &logFile{file: file}, nil
}

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Write(p)
}

func (l *logFile) Close() error { return l.file.Close() }
