package bundle

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	at    = time.Date(2026, 5, 4, 12, 0, 1, 0, time.UTC)
	files = []File{{"man/man1/a.1", []byte("page"), Readable}, {"LICENSE", []byte("text"), Readable}, {"godwit", bytes.Repeat([]byte("x"), 100_000), Executable}}
)

// TestSameBytes: the order of the files and the zone of the time are no part of an archive.
func TestSameBytes(t *testing.T) {
	other := slices.Clone(files)
	slices.Reverse(other)
	for _, name := range []string{"a.tar.gz", "a.zip"} {
		one, err := Write(name, files, at)
		if err != nil {
			t.Fatal(err)
		}
		two, err := Write(name, other, at.In(time.FixedZone("elsewhere", 3600)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one, two) {
			t.Errorf("%s differs", name)
		}
		later, err := Write(name, files, at.Add(time.Hour))
		if err != nil || bytes.Equal(one, later) {
			t.Errorf("%s has not the time of the release: %v", name, err)
		}
		got, err := Read(name, one)
		if err != nil {
			t.Fatal(err)
		}
		want := []File{files[1], files[2], files[0]}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := Write("a.rar", files, at); err == nil {
		t.Error("an unknown format is written")
	}
}

func TestUnpackStaysInside(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"../a", "/etc/a", "a/../../b"} {
		if err := Unpack([]File{{name, nil, Readable}}, dir); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if err := Unpack(files, dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "godwit")); err != nil || info.Mode().Perm() != Executable {
		t.Errorf("%v, %v", info, err)
	}
}

// TestChecksums are those that sha256sum reads.
func TestChecksums(t *testing.T) {
	dir := t.TempDir()
	if err := Unpack(files, dir); err != nil {
		t.Fatal(err)
	}
	list, err := Checksums(dir, "checksums.txt")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "checksums.txt"), list, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Checksums(dir, "checksums.txt")
	if err != nil || !bytes.Equal(list, again) {
		t.Errorf("the list has itself: %v\n%s", err, again)
	}
	command := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "checksums.txt")
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
