// Package gofolder finds the folders and files of a pattern of the go command, for linters.
package gofolder

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// recursive is the suffix of a pattern for a folder and all folders below it.
const recursive = "..."

// Folders returns the folders that match a pattern. As in the go command, ... does not match testdata, vendor, names
// that begin with . or _, and other modules.
func Folders(pattern string) ([]string, error) {
	top, all := strings.CutSuffix(filepath.ToSlash(pattern), recursive)
	if all && top != "" && !strings.HasSuffix(top, "/") {
		return nil, fmt.Errorf("read %s: %s stands for whole folders: write %s/%s", pattern, recursive, top, recursive)
	}
	top = filepath.Clean(filepath.FromSlash(top)) // of nothing it is .
	switch info, err := os.Stat(top); {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", pattern, err)
	case !info.IsDir():
		return nil, fmt.Errorf("read %s: %s is not a folder", pattern, top)
	case !all:
		return []string{top}, nil
	}
	var found []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case path != top && outside(path):
			return filepath.SkipDir
		}
		found = append(found, path)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", pattern, err)
	}
	return found, nil
}

func outside(folder string) bool {
	name := filepath.Base(folder)
	if name == "testdata" || name == "vendor" || hidden(name) {
		return true
	}
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

// Files returns the files of a folder with a suffix, such as .go. It omits tests and hidden files.
func Files(folder, suffix string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, entry := range entries {
		name := entry.Name()
		if !entry.IsDir() && !hidden(name) && strings.HasSuffix(name, suffix) && !strings.HasSuffix(name, "_test.go") {
			found = append(found, filepath.Join(folder, name))
		}
	}
	return found, nil
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }
