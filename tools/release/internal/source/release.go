package source

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// Release is the commit of a release.
type Release struct {
	Version string
	Commit  string
	Time    time.Time
	Modules []Module
	// Dir has the files of the commit.
	Dir string

	origin, clone repository
}

// Make makes the commit of a release from the current commit of the repository, in a clone in dir. It does not change the repository.
func Make(ctx context.Context, origin, version, dir string) (*Release, error) {
	r := &Release{Version: version, Dir: dir, origin: repository{origin}}
	if err := r.origin.mustBeClean(ctx); err != nil {
		return nil, err
	}
	var err error
	if r.clone, err = r.origin.clone(ctx, dir); err != nil {
		return nil, err
	}
	w, err := r.workspace()
	if err != nil {
		return nil, err
	}
	r.Modules = w.published
	if err := r.rewrite(ctx, w); err != nil {
		return nil, err
	}
	if err := r.commit(ctx); err != nil {
		return nil, err
	}
	for _, m := range r.Modules {
		if err := r.origin.mustNotHaveTag(ctx, m.Tag(version), r.Commit); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// workspace reads the go.mod of each module of go.work.
func (r *Release) workspace() (workspace, error) {
	text, err := r.clone.read("go.work")
	if err != nil {
		return workspace{}, err
	}
	work, err := modfile.ParseWork("go.work", text, nil)
	if err != nil {
		return workspace{}, err
	}
	files := map[string][]byte{}
	for _, use := range work.Use {
		dir := path.Clean(use.Path)
		if files[dir], err = r.clone.read(path.Join(dir, "go.mod")); err != nil {
			return workspace{}, err
		}
	}
	return newWorkspace(files)
}

// chartFile is the file that has the version of the chart.
const chartFile = "charts/godwit/Chart.yaml"

// rewrite writes the files of the release into the clone, module by module, because a go.sum has the checksums of the modules
// before it.
func (r *Release) rewrite(ctx context.Context, w workspace) error {
	chart, err := r.clone.read(chartFile)
	if err != nil {
		return err
	}
	if chart, err = stampedChart(chart, r.Version); err != nil {
		return err
	}
	if err := r.clone.write(chartFile, chart); err != nil {
		return err
	}
	sums := map[string]string{}
	for _, m := range w.published {
		if err := r.rewriteModule(w, m, sums); err != nil {
			return err
		}
		tree, err := r.clone.tree(ctx)
		if err != nil {
			return err
		}
		if sums[m.Path], err = r.sum(m, tree); err != nil {
			return err
		}
	}
	return nil
}

func (r *Release) rewriteModule(w workspace, m Module, sums map[string]string) error {
	name := path.Join(m.Dir, "go.mod")
	text, err := r.clone.read(name)
	if err != nil {
		return err
	}
	if text, err = w.released(name, text, r.Version); err != nil {
		return err
	}
	if err := r.clone.write(name, text); err != nil {
		return err
	}
	sumName := path.Join(m.Dir, "go.sum")
	old, err := r.clone.read(sumName)
	if err != nil {
		return err
	}
	return r.clone.write(sumName, summed(old, m.File, sums))
}

// zipOf writes the zip file of a module, as a proxy serves it, from a commit or a tree.
func (r *Release) zipOf(w io.Writer, m Module, revision string) error {
	dir := m.Dir
	if dir == "." {
		dir = ""
	}
	return zip.CreateFromVCS(w, module.Version{Path: m.Path, Version: r.Version}, r.clone.dir, revision, dir)
}

// sum returns the lines of a module for the go.sum of other modules.
func (r *Release) sum(m Module, revision string) (string, error) {
	file, err := os.CreateTemp("", "module-*.zip")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if err := r.zipOf(file, m, revision); err != nil {
		return "", err
	}
	if err := file.Close(); err != nil {
		return "", err
	}
	ofModule, err := dirhash.HashZip(file.Name(), dirhash.Hash1)
	if err != nil {
		return "", err
	}
	text, err := r.clone.read(path.Join(m.Dir, "go.mod"))
	if err != nil {
		return "", err
	}
	ofFile, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil })
	return fmt.Sprintf("%s %s %s\n%[1]s %[2]s/go.mod %[4]s\n", m.Path, r.Version, ofModule, ofFile), err
}

// commit commits the rewritten files. If rewrite changed none, the current commit is the commit of the release.
func (r *Release) commit(ctx context.Context) error {
	head, err := r.clone.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	before, err := r.clone.git(ctx, "rev-parse", "HEAD^{tree}")
	if err != nil {
		return err
	}
	tree, err := r.clone.tree(ctx)
	if err != nil {
		return err
	}
	if r.Commit = head; tree != before {
		if r.Commit, err = r.clone.child(ctx, head, tree, "release: "+r.Version+"\n"); err != nil {
			return err
		}
	}
	r.Time, err = r.clone.time(ctx, r.Commit)
	return err
}

// Keep stores the commit in the repository, so that it can be tagged.
func (r *Release) Keep(ctx context.Context) error { return r.origin.keep(ctx, r.clone, r.Commit) }

// WriteProxy writes the modules as a folder that GOPROXY=file://DIR serves.
func (r *Release) WriteProxy(dir string) error {
	for _, m := range r.Modules {
		if err := r.writeModule(dir, m); err != nil {
			return fmt.Errorf("write module %s: %w", m.Path, err)
		}
	}
	return nil
}

func (r *Release) writeModule(proxy string, m Module) error {
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	dir := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // what everyone may read
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{r.Version, r.Time})
	if err != nil {
		return err
	}
	text, err := r.clone.read(path.Join(m.Dir, "go.mod"))
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := r.zipOf(&archive, m, r.Commit); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"list": []byte(r.Version + "\n"), r.Version + ".info": info, r.Version + ".mod": text, r.Version + ".zip": archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil { //nolint:gosec // what everyone may read
			return err
		}
	}
	return nil
}

// Tags lists the tags of the release and their commit.
func (r *Release) Tags() []byte {
	var b strings.Builder
	for _, m := range r.Modules {
		fmt.Fprintf(&b, "%s %s\n", m.Tag(r.Version), r.Commit)
	}
	return []byte(b.String())
}
