package evidence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/evidence/evidencereport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
)

// maxFile bounds the size of a file: a plan of 10,000 revisions has about 20 MB.
const maxFile = 256 << 20

// read reads all files of a directory and of its folders. A file that can't be read has an error.
func read(dir string) ([]evidencereport.File, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, &frame.ActionableError{Message: fmt.Sprintf("the directory of -f can't be read: %v", err), Remedy: "name a directory with the output of commands", Cause: err}
	case !info.IsDir():
		return nil, &frame.ActionableError{Message: dir + " is not a directory", Remedy: "name a directory with the output of commands"}
	}
	var files []evidencereport.File
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && path == dir:
			return err
		case err == nil && entry.IsDir():
			return nil
		}
		f := fileAt(dir, path)
		if f.Err = err; err == nil {
			f.Text, f.Time, f.Err = contents(path)
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

// fileAt names a file, and its cluster.
func fileAt(dir, path string) evidencereport.File {
	name, err := filepath.Rel(dir, path)
	if err != nil {
		name = path
	}
	f := evidencereport.File{Name: filepath.ToSlash(name), Cluster: baseOf(dir)}
	if folder, _, nested := strings.Cut(f.Name, "/"); nested {
		f.Cluster, f.Folder = folder, true
	}
	return f
}

// contents reads a file. A pipe or a device would not end.
func contents(path string) (text []byte, changed time.Time, err error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, changed, err
	case !info.Mode().IsRegular():
		return nil, changed, errors.New("it is not a regular file")
	case info.Size() > maxFile:
		return nil, changed, fmt.Errorf("it has more than %d MiB", maxFile>>20)
	}
	text, err = os.ReadFile(path)
	return text, info.ModTime(), err
}

// baseOf returns the name of a directory, even of the current one.
func baseOf(dir string) string {
	if path, err := filepath.Abs(dir); err == nil {
		dir = path
	}
	return filepath.Base(dir)
}

// fileNames are names of files for the clusters. The name of a context may have slashes and colons.
func fileNames(reports []evidencereport.Report) []string {
	var names []string
	for _, r := range reports {
		plain := strings.Map(func(c rune) rune {
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.", c) {
				return c
			}
			return '-'
		}, r.Cluster)
		name := strings.TrimLeft(plain, ".")
		for n := 2; name == "" || slices.Contains(names, name); n++ {
			name = fmt.Sprintf("%s-%d", plain, n)
		}
		names = append(names, name)
	}
	return names
}
