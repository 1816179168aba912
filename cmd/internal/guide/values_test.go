package guide_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/godwit-dev/godwit/test/howto"
)

// archives is a CRD whose field spec.retentionDays has another name in v1, with three objects at v1alpha1.
const archives = `
crd() {
  kubectl apply --server-side --force-conflicts -f - <<EOF
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: archives.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: archives, kind: Archive, singular: archive}
  versions:
  - name: v1alpha1
    served: true
    storage: $1
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {retentionDays: {type: integer}}}}}}
  - name: v1
    served: true
    storage: $2
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {keepFor: {type: string}}}}}}
EOF
}
set -e
crd true false
kubectl wait --for=condition=Established crd/archives.example.com
for i in 1 2 3; do
  until printf '{apiVersion: example.com/v1alpha1, kind: Archive, metadata: {name: a%d, namespace: default}, spec: {retentionDays: %d}}' $i ${i}0 | kubectl apply -f -; do sleep 0.2; done
done
crd false true
sleep 1
`

// TestKeepValues runs the guide. It takes the settle time.
func TestKeepValues(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	prepare := exec.CommandContext(t.Context(), "bash", "-c", archives)
	prepare.Env = c.env
	if out, err := prepare.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	commands, err := howto.Run(t.Context(), howto.Guide{File: filepath.Join(root, "docs", "guides", "keep-values.md"), Dir: c.dir, Env: c.env})
	if err != nil || commands != 6 {
		t.Errorf("%d commands, want 6: %v", commands, err)
	}
}
