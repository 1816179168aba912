package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// tailLines is the number of log lines in an error: the cause, without the start-up messages before it.
const tailLines = 15

// logs keeps a file per server in dir and copies them all to one writer, if there is one.
type logs struct {
	dir  string
	copy io.Writer

	mu    sync.Mutex
	files []*os.File
}

// open returns the file itself when there is no writer to copy to: a server then writes to it directly.
func (l *logs) open(name string) (io.Writer, error) {
	file, err := os.OpenFile(l.path(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files = append(l.files, file)
	if l.copy == nil {
		return file, nil
	}
	return io.MultiWriter(file, l), nil
}

// Write may be called by several servers at once, also where the writer is not safe for that.
func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.copy.Write(p)
}

// tail renders the end of a log as the end of an error; empty where there is no log.
func (l *logs) tail(name string) string {
	content, err := os.ReadFile(l.path(name))
	text := strings.TrimSpace(string(content))
	if err != nil || text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	return fmt.Sprintf("; %s ends:\n%s", l.path(name), strings.Join(lines[max(0, len(lines)-tailLines):], "\n"))
}

func (l *logs) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, file := range l.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}

func (l *logs) path(name string) string { return filepath.Join(l.dir, name+".log") }
