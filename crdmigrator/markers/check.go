package markers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godwit-dev/godwit/internal/gofolder"
)

// Check checks the packages in the folders that the patterns name, as for the go
// command: ./api/v1, or ./api/... for all below. Findings are in the order of
// files and lines; none means that every root type carries a valid marker. A
// pattern that matches no folder, no Go file or no root type is an error, since
// nothing would have been checked.
func Check(o Options, patterns ...string) ([]Finding, error) {
	r, err := o.rules()
	if err != nil {
		return nil, err
	}
	if len(patterns) == 0 {
		return nil, errors.New("no folder is given: name those of API types, ./api/... for example")
	}
	read := map[string]folder{}
	for _, pattern := range patterns {
		if err := readPattern(pattern, read); err != nil {
			return nil, err
		}
	}
	var all []subject
	for _, f := range read {
		all = append(all, f.subjects...)
	}
	slices.SortFunc(all, func(a, b subject) int { return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line) })
	findings := r.check(all)
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line) })
	return findings, nil
}

// folder is a package that was read.
type folder struct {
	files    int
	subjects []subject
}

// readPattern adds the folders that a pattern names to those already read.
func readPattern(pattern string, read map[string]folder) error {
	paths, err := gofolder.Folders(pattern)
	if err != nil {
		return err
	}
	files, roots := 0, 0
	for _, path := range paths {
		f, ok := read[path]
		if !ok {
			if f, err = readFolder(path); err != nil {
				return fmt.Errorf("read %s: %w", pattern, err)
			}
			read[path] = f
		}
		files += f.files
		for _, s := range f.subjects {
			if s.root() {
				roots++
			}
		}
	}
	switch {
	case files == 0:
		return fmt.Errorf("%s has no Go files: nothing would be checked", pattern)
	case roots == 0:
		return fmt.Errorf("%s has no root types, which are structs marked +%s=true: nothing would be checked", pattern, rootMarker)
	}
	return nil
}

func readFolder(path string) (folder, error) {
	names, err := gofolder.Files(path, ".go")
	if err != nil {
		return folder{}, err
	}
	f := folder{files: len(names)}
	group := ""
	for _, name := range names {
		s, err := readSource(name, nil)
		if err != nil {
			return folder{}, err
		}
		group = cmp.Or(s.group, group)
		for _, t := range s.types {
			f.subjects = append(f.subjects, subject{declaration: t, file: name, folder: path})
		}
	}
	for i := range f.subjects {
		f.subjects[i].group = group
	}
	return f, nil
}
