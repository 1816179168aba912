package node

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/godwit-dev/godwit/test/program"
)

// programs are those of bin/node.
type programs struct {
	dir string
	// cni is the folder of CNI plugins.
	cni string
	env []string
}

// findPrograms returns the programs that tools/node/build.sh provides. Packages of Debian that are installed are not in bin/node.
func findPrograms(ctx context.Context) (programs, error) {
	root, err := program.Root(ctx)
	if err != nil {
		return programs{}, err
	}
	p := programs{dir: filepath.Join(root, "bin", "node"), cni: "/usr/lib/cni"}
	if _, err := os.Stat(filepath.Join(p.dir, "kubelet")); err != nil {
		return programs{}, fmt.Errorf("find kubelet: %w: run `make node`", err)
	}
	search := p.dir + ":" + os.Getenv("PATH") + ":/usr/sbin:/sbin"
	unpacked := filepath.Join(p.dir, "debian")
	libraries, err := filepath.Glob(filepath.Join(unpacked, "usr", "lib", "*-linux-gnu*"))
	if err != nil {
		return programs{}, err
	}
	if len(libraries) > 0 {
		p.cni = filepath.Join(unpacked, "usr", "lib", "cni")
		search = filepath.Join(unpacked, "usr", "sbin") + ":" + search
		p.env = append(p.env, "LD_LIBRARY_PATH="+libraries[0], "XTABLES_LIBDIR="+filepath.Join(libraries[0], "xtables"))
	}
	p.env = append(p.env, "PATH="+search)
	return p, nil
}

// command is one of the programs, with what it needs in its environment.
func (p programs) command(name string, args ...string) *exec.Cmd {
	command := exec.Command(filepath.Join(p.dir, name), args...)
	command.Env = append(os.Environ(), p.env...)
	return command
}

// run runs one of the programs. It may read what is given.
func (p programs) run(ctx context.Context, stdin io.Reader, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(p.dir, name), args...)
	command.Env, command.Stdin = append(os.Environ(), p.env...), stdin
	out, err := command.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	return string(out), err
}

// Rules returns the rules of iptables in the network of this process, without the numbers of packets.
func Rules(ctx context.Context) ([]string, error) {
	p, err := findPrograms(ctx)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, "sh", "-c", "iptables-save && ip6tables-save") // the shell searches p.env
	command.Env = append(os.Environ(), p.env...)
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("read the rules of iptables: %w", err)
	}
	var rules []string
	for line := range strings.Lines(string(out)) {
		if rule, _, _ := strings.Cut(strings.TrimSpace(line), " ["); rule != "" && !strings.HasPrefix(rule, "#") {
			rules = append(rules, rule)
		}
	}
	return rules, nil
}

// refName is the annotation of an image in a layout with its tag.
const refName = "org.opencontainers.image.ref.name"

// Image is an image in a layout of the Open Container Initiative.
type Image struct {
	// Repository is the name of the image, without a tag.
	Repository string
	// Layout is its folder.
	Layout string
}

// Load makes images known on all nodes, by tag and by digest, as if they had been pulled.
func (c *Cluster) Load(ctx context.Context, images ...Image) error {
	for _, n := range c.nodes {
		for _, i := range images {
			if err := n.load(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (n *Node) load(ctx context.Context, i Image) error {
	tag, digest, err := i.reference()
	if err != nil {
		return fmt.Errorf("load image %s: %w", i.Repository, err)
	}
	archive := archiveFolder(i.Layout)
	defer func() { _ = archive.Close() }() // ends the archive where it is not read
	if _, err := n.cluster.programs.run(ctx, archive, "ctr", n.ctrArgs("images", "import", "--base-name="+i.Repository, "-")...); err != nil {
		return fmt.Errorf("load image %s: %w", i.Repository, err)
	}
	if _, err := n.ctr(ctx, "images", "tag", "--force", i.Repository+":"+tag, i.Repository+"@"+digest); err != nil {
		return fmt.Errorf("load image %s: %w", i.Repository, err)
	}
	return nil
}

// reference reads the tag and the digest of the layout's only image.
func (i Image) reference() (tag, digest string, err error) {
	text, err := os.ReadFile(filepath.Join(i.Layout, "index.json"))
	if err != nil {
		return "", "", err
	}
	var index struct {
		Manifests []struct {
			Digest      string            `json:"digest"`
			Annotations map[string]string `json:"annotations"`
		} `json:"manifests"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		return "", "", err
	}
	if len(index.Manifests) != 1 {
		return "", "", fmt.Errorf("%s has %d images, want one", i.Layout, len(index.Manifests))
	}
	return index.Manifests[0].Annotations[refName], index.Manifests[0].Digest, nil
}

// ByDigest returns the reference of the image by its digest, which no kubelet pulls again.
func (i Image) ByDigest() (string, error) {
	_, digest, err := i.reference()
	return i.Repository + "@" + digest, err
}

// archiveFolder returns a folder as an archive.
func archiveFolder(folder string) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() {
		w := tar.NewWriter(writer)
		_ = writer.CloseWithError(errors.Join(w.AddFS(os.DirFS(folder)), w.Close())) // it returns no error
	}()
	return reader
}

// ImageOf returns the image that Prepare has made of a program.
func ImageOf(ctx context.Context, name string) (Image, error) {
	folder, err := imageFolder(ctx)
	if err != nil {
		return Image{}, err
	}
	return Image{Repository: "localhost/" + name, Layout: filepath.Join(folder, name)}, nil
}

func (c *Cluster) pause(ctx context.Context) (Image, error) { return ImageOf(ctx, "pause") }

func imageFolder(ctx context.Context) (string, error) {
	root, err := program.Root(ctx)
	return filepath.Join(root, "bin", "images"), err
}

// Prepare compiles packages that are static programs, and makes an image of each, by the program that makes the images of releases. It
// needs the go command and maybe a network, so it runs before the machine exists.
func Prepare(packages ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		folder, err := imageFolder(ctx)
		if err != nil {
			return err
		}
		for _, from := range append([]string{"github.com/godwit-dev/godwit/test/node/pause"}, packages...) {
			if err := program.Image(ctx, from, filepath.Join(folder, path.Base(from))); err != nil {
				return err
			}
		}
		return nil
	}
}

// PrepareProgram is like Prepare for a program that is compiled.
func PrepareProgram(ctx context.Context, file string) error { return prepareProgram(ctx, file) }

// PrepareWithoutEntrypoint is like PrepareProgram for an image of which pods name the program, as their first argument.
func PrepareWithoutEntrypoint(ctx context.Context, file string) error {
	return prepareProgram(ctx, file, "-no-entrypoint")
}

func prepareProgram(ctx context.Context, file string, flags ...string) error {
	folder, err := imageFolder(ctx)
	if err != nil {
		return err
	}
	return program.ImageOf(ctx, file, filepath.Join(folder, filepath.Base(file)), flags...)
}
