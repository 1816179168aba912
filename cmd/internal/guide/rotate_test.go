package guide_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/howto"
)

// rotation has one key, as the reader of the guide before the first step.
const rotation = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n" +
	"  providers:\n  - aescbc: {keys: [{name: key1, secret: %s}]}\n  - identity: {}\n"

// TestRotateAnEncryptionKey runs the guide, and counts in etcd before and after by what the API server wrote in front of each Secret.
func TestRotateAnEncryptionKey(t *testing.T) {
	t.Parallel()
	const secrets = 12
	c := &cluster{t: t, dir: t.TempDir()}
	oldKey := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("1", 32)))
	newKey := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("2", 32)))
	file := filepath.Join(c.dir, "enc.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, rotation, oldKey), 0o600); err != nil {
		t.Fatal(err)
	}
	c.plane = controlplane.Options{APIServerArgs: []string{"--encryption-provider-config=" + file}}.StartFor(t)
	client, err := kubernetes.NewForConfig(c.plane.Config())
	if err != nil {
		t.Fatal(err)
	}
	for i := range secrets {
		_, err := client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s-%d", i)}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	stored := func(key string) int {
		all, err := c.plane.Etcd().Get(t.Context(), "/registry/secrets/", clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, kv := range all.Kvs {
			if strings.HasPrefix(string(kv.Value), "k8s:enc:aescbc:v1:"+key+":") {
				n++
			}
		}
		return n
	}
	if n := stored("key1"); n != secrets {
		t.Fatalf("%d Secrets are encrypted with key1 before, want %d", n, secrets)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, c.plane.Config()); err != nil {
		t.Fatal(err)
	}
	restarts := c.restartOnDemand()
	commands, err := howto.Run(t.Context(), howto.Guide{
		File: filepath.Join(root, "docs", "guides", "rotate-an-encryption-key.md"),
		Placeholders: map[string]string{
			"USER": "alice", "OLDKEY": oldKey, "NEWKEY": newKey, "URL": c.plane.EtcdEndpoint(),
			"RESTART": "touch restart && while [ -e restart ]; do sleep 0.1; done",
		},
		Dir: c.dir, Env: []string{"PATH=" + c.programs() + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + t.TempDir(), "KUBECONFIG=" + kubeconfig},
	})
	if err != nil {
		t.Fatal(err)
	}
	if done := restarts(); done != 2 || commands != 7 {
		t.Errorf("%d restarts and %d commands, want 2 and 7", done, commands)
	}
	if before, after := stored("key1"), stored("key2"); before != 0 || after != secrets {
		t.Errorf("%d Secrets are encrypted with key1 and %d with key2, want 0 and %d", before, after, secrets)
	}
}

// restartOnDemand restarts the API server when the reader asks for it by a file, and waits for its lease.
func (c *cluster) restartOnDemand() (done func() int) {
	ctx, cancel := context.WithCancel(c.t.Context())
	restarts := make(chan int, 1)
	go func() {
		n := 0
		defer func() { restarts <- n }()
		for ctx.Err() == nil {
			file := filepath.Join(c.dir, "restart")
			if _, err := os.Stat(file); err == nil {
				if err := c.plane.RestartAPIServer(ctx); err != nil {
					c.t.Error(err)
				}
				n++
				_ = os.Remove(file)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	return func() int { cancel(); return <-restarts }
}
