// Package markers_test checks the markers of an operator that used them before Godwit.
package markers_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/crdmigrator/markers"
	"github.com/godwit-dev/godwit/test/gomodule"
)

// toolHive has fourteen kinds, all of them migrated: thirteen are stored at v1beta1, most of
// them with an unmarked v1alpha1, and one at v1alpha1.
const (
	toolHive = "github.com/stacklok/toolhive@v0.47.0"
	api      = "cmd/thv-operator/api"
	kinds    = 14
)

var theirs = markers.Options{
	Label:   "toolhive.stacklok.dev/auto-migrate-storage-version=true",
	Exclude: "+thv:storage-version-migrator:exclude",
}

func TestToolHive(t *testing.T) {
	dir, err := gomodule.Dir(t.Context(), toolHive)
	if err != nil {
		t.Fatal(err)
	}
	original := filepath.Join(dir, filepath.FromSlash(api))
	markers.Require(t, theirs, original+"/...", original+"/v1beta1")
	if t.Failed() {
		return
	}
	theirDir := t.TempDir()
	if err := os.CopyFS(theirDir, os.DirFS(original)); err != nil {
		t.Fatal(err)
	}
	marked := 0
	err = filepath.WalkDir(theirDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_types.go") && entry.Name() != "types.go" {
			return err
		}
		marked += forgetEach(t, theirDir, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if marked != kinds {
		t.Errorf("%d markers were deleted in turn, want one of each of %d kinds", marked, kinds)
	}
}

// forgetEach deletes one marker of the file after the other.
func forgetEach(t *testing.T, dir, path string) (marked int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil { // the copy of the module cache is read-only
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i, line := range lines {
		if !bytes.Contains(line, []byte("+kubebuilder:metadata:labels="+theirs.Label)) {
			continue
		}
		marked++
		forgotten := bytes.Join(append(lines[:i:i], lines[i+1:]...), nil)
		if err := os.WriteFile(path, forgotten, 0o600); err != nil {
			t.Fatal(err)
		}
		findings, err := markers.Check(theirs, dir+"/...")
		if err != nil {
			t.Fatal(err)
		}
		want := []markers.Finding{{File: path, Finding: godwit.Finding{Reason: markers.Missing, Fix: markers.Missing.Fix}}}
		want[0].Type, want[0].Line = nextType(lines[i+1:], i+1)
		for j := range findings {
			findings[j].Message = ""
		}
		if diff := cmp.Diff(want, findings); diff != "" {
			t.Errorf("without the marker on line %d of %s (-want +got):\n%s", i+1, path, diff)
		}
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return marked
}

// nextType finds the next type in the lines, the first of which has the given number.
func nextType(lines [][]byte, number int) (name string, line int) {
	for i, text := range lines {
		if fields := strings.Fields(string(text)); len(fields) > 2 && fields[0] == "type" {
			return fields[1], number + i
		}
	}
	return "", 0
}
