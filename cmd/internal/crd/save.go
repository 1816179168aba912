package crd

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/render"
	"github.com/godwit-dev/godwit/internal/storageversion"
)

// savedValues is a file with the values that a run would drop, one line for each object.
type savedValues struct {
	path    string
	file    *os.File
	to      *bufio.Writer
	objects int64
}

// saveValues creates the file. It is for its owner alone, since objects hold secrets, and never replaces another file.
func saveValues(path string) (*savedValues, error) {
	const onlyOwner = 0o600
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, onlyOwner)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, frame.Usagef("--save-values=%s exists already, and may have values that no object has any more: name another file", path)
	case err != nil:
		return nil, fmt.Errorf("create the file of --save-values: %w", err)
	}
	return &savedValues{path: path, file: file, to: bufio.NewWriter(file)}, nil
}

// add writes a line.
func (s *savedValues) add(lost storageversion.LostValues) error {
	line, err := json.Marshal(lost)
	if err != nil {
		return err
	}
	s.objects++
	if _, err := s.to.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write to %s: %w", s.path, err)
	}
	return nil
}

// close ends the file, and says how many objects it has. It removes a file without a line, and one whose command failed.
func (s *savedValues) close(console *frame.Console, failed error) error {
	err := errors.Join(failed, s.to.Flush(), s.file.Sync(), s.file.Close())
	if err != nil || s.objects == 0 {
		if err == nil {
			console.Printf("no object would lose a value: %s is not written\n", s.path)
		}
		return errors.Join(err, os.Remove(s.path))
	}
	console.Printf("saved the values of %s in %s\n", render.Count(s.objects, "object", "objects"), s.path)
	return nil
}
