package rejoin

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
)

// importManifest is the key of an import Secret with the manifests of a klusterlet.
const importManifest = "import.yaml"

// importedIn returns the bootstrap kubeconfig in the manifests of an import controller, or nil if they have none. The cluster has a klusterlet, and
// the import controller applies the rest of them when the cluster has registered.
func importedIn(manifests []byte) ([]byte, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests)))
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		s := &corev1.Secret{}
		if err == nil {
			err = yaml.Unmarshal(text, s)
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifests of the import controller: %w", err)
		}
		if s.Kind == "Secret" && s.Name == klusterlet.OwnSecret {
			return s.Data[cluster.KubeconfigKey], nil
		}
	}
}
