package main

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"testing"
)

// hastyScreen is the terminal of a command that has ended: the first read fails although
// there is output.
type hastyScreen struct {
	failed bool
	output bytes.Buffer
}

func (s *hastyScreen) Read(p []byte) (int, error) {
	if !s.failed {
		s.failed = true
		return 0, syscall.EIO
	}
	n, err := s.output.Read(p)
	if errors.Is(err, io.EOF) {
		err = syscall.EIO
	}
	return n, err
}

func TestCopyScreenReadsOutputAfterTheEndOfTheTerminal(t *testing.T) {
	const message = "interrupted, nothing was written"
	screen := &hastyScreen{}
	screen.output.WriteString(message)
	var shown bytes.Buffer
	copyScreen(&shown, screen)
	if got := shown.String(); got != message {
		t.Errorf("the terminal shows %q, want %q", got, message)
	}
}
