package machine

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/godwit-dev/godwit/test/process"
)

// sweep waits until alive is closed, as it is when the process has ended that made the machine. It then removes the machine's
// cgroups, which is possible when their processes have ended, and its folder.
func sweep(ctx context.Context, alive io.Reader) error {
	_, _ = io.Copy(io.Discard, alive) // an error is an end as well
	all, err := hierarchies()
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range all {
		cgroup := h.own(Folder())
		errs = append(errs, process.Poll(ctx, "the end of all processes", func(context.Context) error { return removeCgroups(cgroup) }))
	}
	return errors.Join(append(errs, os.RemoveAll(Folder()))...)
}

// removeCgroups removes a cgroup and all below it. It fails while they have processes.
func removeCgroups(root string) error {
	var folders []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, folder := range slices.Backward(folders) {
		if err := os.Remove(folder); err != nil { // The files of a cgroup go with its folder.
			return err
		}
	}
	return nil
}
