package guide_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/godwit-dev/godwit/test/howto"
)

// providerKubernetes compiles a release of provider-kubernetes, and returns the folder of its CRDs.
func providerKubernetes(t *testing.T, module string) (binary, crds string) {
	t.Helper()
	const path = "github.com/crossplane-contrib/provider-kubernetes"
	run := func(args ...string) string {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir = filepath.Join(root, "test", "externalname", "testdata", module)
		command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	binary = filepath.Join(t.TempDir(), "provider")
	run("build", "-o", binary, path+"/cmd/provider")
	return binary, filepath.Join(run("list", "-m", "-f", "{{.Dir}}", path), "package", "crds")
}

// installCRDs installs the CRDs of a release of a provider, without a conversion webhook: one version is used.
const installCRDs = `
set -e
for file in "$CRDS"/*.yaml; do
  kubectl create --dry-run=client -o json -f "$file" | sed -e 's/"strategy": "Webhook"/"strategy": "None"/' -e '/"webhook": {/,/^ \{12\}}/d' | kubectl apply --server-side --force-conflicts -f -
done
`

// createObjects creates what the guide moves.
const createObjects = `
set -e
kubectl create namespace shop
kubectl create secret generic cluster --from-file=kubeconfig="$KUBECONFIG"
until kubectl apply -f - <<EOF
apiVersion: kubernetes.crossplane.io/v1alpha1
kind: ProviderConfig
metadata: {name: default}
spec: {credentials: {source: Secret, secretRef: {namespace: default, name: cluster, key: kubeconfig}}}
---
apiVersion: kubernetes.crossplane.io/v1alpha2
kind: Object
metadata: {name: settings, labels: {crossplane.io/claim-namespace: shop}}
spec:
  providerConfigRef: {name: default}
  forProvider:
    manifest: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: settings}, data: {color: blue}}
---
apiVersion: kubernetes.crossplane.io/v1alpha2
kind: Object
metadata: {name: limits, labels: {crossplane.io/claim-namespace: shop}}
spec:
  providerConfigRef: {name: default}
  forProvider:
    manifest: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: limits}, data: {pods: "7"}}
EOF
do sleep 0.2; done
kubectl wait --for=condition=Ready objects.kubernetes.crossplane.io/settings objects.kubernetes.crossplane.io/limits --timeout=60s
`

const configureV2 = `
until kubectl apply -f - <<EOF
apiVersion: kubernetes.m.crossplane.io/v1alpha1
kind: ClusterProviderConfig
metadata: {name: default}
spec: {credentials: {source: Secret, secretRef: {namespace: default, name: cluster, key: kubeconfig}}}
EOF
do sleep 0.2; done
`

// TestMoveToCrossplaneV2 runs the guide beside provider-kubernetes: the release for Crossplane v1 has created what is moved. It
// compiles both releases, so that make e2e-crossplane runs it.
func TestMoveToCrossplaneV2(t *testing.T) {
	if os.Getenv("GODWIT_E2E_CROSSPLANE") == "" {
		t.Skip("make e2e-crossplane runs it")
	}
	t.Parallel()
	old, oldCRDs := providerKubernetes(t, "providerkubernetes")
	next, nextCRDs := providerKubernetes(t, "providerkubernetesv2")
	c := newCluster(t)
	sh := func(script string, env ...string) string {
		command := exec.CommandContext(t.Context(), "bash", "-c", script)
		command.Env = append(append([]string{}, c.env...), env...)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	const uids = `kubectl get configmap -n shop settings limits -o jsonpath='{.items[*].metadata.uid}'`
	sh(installCRDs, "CRDS="+oldCRDs)
	stop := c.runProvider(old)
	sh(createObjects)
	before := sh(uids)
	stop()
	sh(installCRDs, "CRDS="+nextCRDs)
	sh(configureV2)
	c.runProvider(next)

	commands, err := howto.Run(t.Context(), howto.Guide{
		File: filepath.Join(root, "docs", "guides", "move-to-crossplane-v2.md"), Dir: c.dir, Env: c.env, Placeholders: map[string]string{"NAMESPACE": "shop"},
	})
	if err != nil || commands != 10 {
		t.Fatalf("%d commands, want 10: %v", commands, err)
	}
	if after := sh(uids); after != before {
		t.Errorf("the ConfigMaps have the UIDs %s, and had %s", after, before)
	}
	sh(`kubectl patch objects.kubernetes.m.crossplane.io -n shop settings --type=merge -p '{"spec":{"forProvider":{"manifest":{"data":{"color":"red"}}}}}'
kubectl wait configmap -n shop settings --for=jsonpath={.data.color}=red --timeout=60s
kubectl delete objects.kubernetes.m.crossplane.io -n shop limits --timeout=60s
! kubectl get configmap -n shop limits`)
}

// runProvider runs a provider until the end of the test, or until it is stopped.
func (c *cluster) runProvider(binary string) (stop func()) {
	c.t.Helper()
	certificates := c.t.TempDir()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for name, text := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(certificates, name), text, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	command := exec.CommandContext(c.t.Context(), binary, "--poll=1s", "--poll-jitter-percentage=0")
	command.Env = append(append([]string{}, c.env...), "WEBHOOK_TLS_CERT_DIR="+certificates, "TLS_SERVER_CERTS_DIR="+certificates)
	command.WaitDelay = 10 * time.Second
	var printed strings.Builder
	command.Stdout, command.Stderr = &printed, &printed
	if err := command.Start(); err != nil {
		c.t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = command.Process.Kill()
		_ = command.Wait()
		if c.t.Failed() {
			c.t.Logf("the provider printed:\n%s", printed.String())
		}
	}
	c.t.Cleanup(stop)
	return stop
}
