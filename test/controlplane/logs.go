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

// open opens the log of a server. Without a writer to copy to, it returns the file itself, to which a server can write
// directly.
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

// Write copies to the writer. Several servers may call it at once, even if the writer is not safe for that.
func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.copy.Write(p)
}

// tail renders the end of a log as the end of an error. It is empty if there is no log.
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
