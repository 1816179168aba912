// Package bundle writes archives. Their bytes depend only on the names, the contents and the modes of their files, and on
// the time of the release.
package bundle

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// File is a file of an archive.
type File struct {
	Name    string
	Content []byte
	// Mode has the permissions. Archives have no owner.
	Mode fs.FileMode
}

// Modes of files.
const (
	Readable   fs.FileMode = 0o644
	Executable fs.FileMode = 0o755
)

func sorted(files []File) []File {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files
}

// Write returns an archive in the format of its name: .tar.gz, .tgz or .zip.
func Write(name string, files []File, at time.Time) ([]byte, error) {
	switch {
	case strings.HasSuffix(name, ".zip"):
		return Zip(files, at)
	case strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"):
		return TarGzip(files, at)
	}
	return nil, fmt.Errorf("%s: no format has this name", name)
}

// TarGzip returns a compressed tar archive.
func TarGzip(files []File, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	content, err := Tar(files, at)
	if err != nil {
		return nil, err
	}
	if _, err := compressed.Write(content); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Tar returns a tar archive without an owner.
func Tar(files []File, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range sorted(files) {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Size: int64(len(f.Content)), Mode: int64(f.Mode.Perm()), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Zip returns a zip archive.
func Zip(files []File, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestCompression) })
	for _, f := range sorted(files) {
		h := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: at.UTC()}
		h.SetMode(f.Mode.Perm())
		entry, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.Content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Read returns the files of an archive, in their order.
func Read(name string, content []byte) ([]File, error) {
	if strings.HasSuffix(name, ".zip") {
		return readZip(content)
	}
	uncompressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return ReadTar(uncompressed)
}

// ReadTar returns the files of a tar archive.
func ReadTar(from io.Reader) ([]File, error) {
	var files []File
	r := tar.NewReader(from)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		if h.Typeflag != tar.TypeReg {
			return nil, fmt.Errorf("%s is not a regular file", h.Name)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		files = append(files, File{Name: h.Name, Content: content, Mode: h.FileInfo().Mode()})
	}
}

func readZip(content []byte) ([]File, error) {
	r, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	var files []File
	for _, entry := range r.File {
		in, err := entry.Open()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		files = append(files, File{Name: entry.Name, Content: text, Mode: entry.Mode()})
	}
	return files, nil
}

// Unpack writes files into a folder.
func Unpack(files []File, dir string) error {
	for _, f := range files {
		if !filepath.IsLocal(filepath.FromSlash(f.Name)) {
			return fmt.Errorf("%s is outside of the archive", f.Name)
		}
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.Content, f.Mode.Perm()); err != nil {
			return err
		}
	}
	return nil
}

// Sum returns the SHA-256 of a file, in the form that checksum files and manifests use.
func Sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Checksums lists the checksum of each file of a folder except some, in the form that `sha256sum --check` reads.
func Checksums(dir string, except ...string) ([]byte, error) {
	var b bytes.Buffer
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil || slices.Contains(except, relative) {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", Sum(content), path.Clean(filepath.ToSlash(relative)))
		return nil
	})
	return b.Bytes(), err
}
