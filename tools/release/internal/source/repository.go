package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/godwit-dev/godwit/tools/release/internal/command"
)

// repository is a git repository, or a work tree of one.
type repository struct{ dir string }

func (r repository) git(ctx context.Context, args ...string) (string, error) {
	return command.Command{Dir: r.dir}.Line(ctx, "git", args...)
}

// mustBeClean refuses a tree with uncommitted changes, because a user could not make that release again.
func (r repository) mustBeClean(ctx context.Context) error {
	status, err := r.git(ctx, "status", "--porcelain")
	if err != nil {
		return err
	}
	if status == "" {
		return nil
	}
	first, _, more := strings.Cut(status, "\n")
	text := strings.TrimSpace(first)
	if more {
		text += fmt.Sprintf(" and %d more", strings.Count(status, "\n"))
	}
	return fmt.Errorf("the tree is dirty (%s): commit the changes that `git status` lists, or remove them", text)
}

// mustNotHaveTag refuses a tag that exists on another commit than the commit of the release.
func (r repository) mustNotHaveTag(ctx context.Context, tag, commit string) error {
	if _, err := r.git(ctx, "show-ref", "--verify", "--quiet", "refs/tags/"+tag); err != nil {
		return nil //nolint:nilerr // the tag does not exist
	}
	tagged, err := r.git(ctx, "rev-parse", "refs/tags/"+tag+"^{commit}")
	if err != nil {
		return err
	}
	if tagged != commit {
		return fmt.Errorf("tag %s exists on commit %.12s, and this release is %.12s: choose another version, or check out the tag to make that release again", tag, tagged, commit)
	}
	return nil
}

// clone makes a clone in dir, at the same commit. It shares the objects of r, and its changes do not change r.
func (r repository) clone(ctx context.Context, dir string) (repository, error) {
	origin, err := filepath.Abs(r.dir)
	if err != nil {
		return repository{}, err
	}
	_, err = command.Command{}.Run(ctx, "git", "clone", "--quiet", "--shared", "--no-checkout", origin, dir)
	if err != nil {
		return repository{}, err
	}
	head, err := r.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return repository{}, err
	}
	c := repository{dir}
	_, err = c.git(ctx, "-c", "advice.detachedHead=false", "checkout", "--quiet", head)
	return c, err
}

func (r repository) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.dir, name), content, 0o644) //nolint:gosec // what everyone may read
}

func (r repository) read(name string) ([]byte, error) { return os.ReadFile(filepath.Join(r.dir, name)) }

// tree stores the files of the folder as a tree object, and returns its hash.
func (r repository) tree(ctx context.Context) (string, error) {
	if _, err := r.git(ctx, "add", "--update"); err != nil {
		return "", err
	}
	return r.git(ctx, "write-tree")
}

// time returns the time of the committer.
func (r repository) time(ctx context.Context, commit string) (time.Time, error) {
	text, err := r.git(ctx, "show", "--no-patch", "--format=%ct", commit)
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0).UTC(), err
}

// child makes a commit of a tree, with the author, the committer and the time of its parent.
func (r repository) child(ctx context.Context, parent, tree, message string) (string, error) {
	who, err := r.git(ctx, "show", "--no-patch", "--format=%an%n%ae%n%cn%n%ce%n%ct +0000", parent)
	if err != nil {
		return "", err
	}
	f := strings.Split(who, "\n")
	if len(f) != 5 {
		return "", fmt.Errorf("commit %s has no author or committer", parent)
	}
	c := command.Command{Dir: r.dir, Stdin: message, Env: []string{
		"GIT_AUTHOR_NAME=" + f[0], "GIT_AUTHOR_EMAIL=" + f[1], "GIT_AUTHOR_DATE=" + f[4],
		"GIT_COMMITTER_NAME=" + f[2], "GIT_COMMITTER_EMAIL=" + f[3], "GIT_COMMITTER_DATE=" + f[4],
	}}
	return c.Line(ctx, "git", "commit-tree", tree, "-p", parent)
}

// releaseRef names the commit of a release in a clone, so that keep can fetch it.
const releaseRef = "refs/release"

// keep copies the commit of a release from a clone into r, without a branch or a tag.
func (r repository) keep(ctx context.Context, clone repository, commit string) error {
	if _, err := clone.git(ctx, "update-ref", releaseRef, commit); err != nil {
		return err
	}
	from, err := filepath.Abs(clone.dir)
	if err != nil {
		return err
	}
	_, err = r.git(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", from, releaseRef)
	return err
}
