package check

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/godwit-dev/godwit/tools/release/internal/artifact"
	"github.com/godwit-dev/godwit/tools/release/internal/build"
	"github.com/godwit-dev/godwit/tools/release/internal/command"
	"github.com/godwit-dev/godwit/tools/release/internal/oci"
)

// chart pushes the layout to a registry in this process, in the same form as a release publishes it. Helm pulls and renders it.
func (c *Check) chart(ctx context.Context) (string, error) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	if err := c.push(ctx, host+"/charts/godwit:"+artifact.Number(c.Version)); err != nil {
		return "", err
	}
	helm, err := build.Helm(ctx, c.Repository)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(c.temp, "helm")
	if err := os.Mkdir(dir, 0o750); err != nil {
		return "", err
	}
	in := command.Command{Dir: dir, Env: []string{"HOME=" + dir, "KUBECONFIG=" + os.DevNull}}
	if _, err := in.Run(ctx, helm, "pull", "oci://"+host+"/charts/godwit", "--version="+artifact.Number(c.Version), "--plain-http"); err != nil {
		return "", err
	}
	pulled, err := os.ReadFile(filepath.Join(dir, artifact.Chart(c.Version)))
	if err != nil {
		return "", err
	}
	want, err := c.read(artifact.Chart(c.Version))
	if err != nil {
		return "", err
	}
	if !bytes.Equal(pulled, want) {
		return "", fmt.Errorf("helm pulls another archive than %s", artifact.Chart(c.Version))
	}
	return c.render(ctx, in, helm)
}

func (c *Check) push(ctx context.Context, to string) error {
	path, descriptor, err := oci.Index(filepath.Join(c.Dir, artifact.ChartLayout))
	if err != nil {
		return err
	}
	artifactOf, err := path.Image(descriptor.Digest)
	if err != nil {
		return err
	}
	ref, err := name.ParseReference(to, name.Insecure)
	if err != nil {
		return err
	}
	return remote.Write(ref, artifactOf, remote.WithContext(ctx))
}

// render checks that Helm renders the chart with the image of the release.
func (c *Check) render(ctx context.Context, in command.Command, helm string) (string, error) {
	rendered, err := in.Run(ctx, helm, "template", "godwit", artifact.Chart(c.Version), "--namespace=godwit")
	if err != nil {
		return "", err
	}
	index, err := c.imageIndex()
	if err != nil {
		return "", err
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	image := artifact.Image + "@" + digest.String()
	if !strings.Contains(rendered, `image: "`+image+`"`) {
		return "", fmt.Errorf("what Helm renders does not name %s", image)
	}
	if !strings.Contains(rendered, `app.kubernetes.io/version: "`+artifact.Number(c.Version)+`"`) {
		return "", fmt.Errorf("what Helm renders is not of version %s", artifact.Number(c.Version))
	}
	return "Helm pulls it and renders " + image, nil
}
