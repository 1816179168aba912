// Package gofolder finds the folders and the files that a pattern of the go command names, for linters.
package gofolder

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// recursive is how the go command writes a folder and all below it.
const recursive = "..."

// Folders are those that a pattern names. Below ... there are no testdata and
// vendor, nothing that begins with . or _, and no other module, as for the go
// command.
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

// Files are the files of a folder that have a suffix, such as .go. Tests and hidden files are left out.
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
