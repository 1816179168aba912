package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/godwit-dev/godwit/test/process"
)

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
func (l *logs) tail(name string) string { return process.Tail(l.path(name)) }

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
