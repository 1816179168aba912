package resource_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/crdmigrator/etcdverify"
	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/format/formattest"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/internal/storageversion/resource"
	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/walk"
)

const (
	secrets = 60
	// content is in every Secret, and must be nowhere else.
	content = "correct-horse-battery-staple"
)

// configuration encrypts Secrets with the first of the keys.
func configuration(keys ...string) string {
	var text strings.Builder
	text.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n  - aescbc:\n      keys:\n")
	for _, key := range keys {
		secret := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(key[len(key)-1:], 32)))
		_, _ = fmt.Fprintf(&text, "      - {name: %s, secret: %s}\n", key, secret)
	}
	text.WriteString("  - identity: {}\n")
	return text.String()
}

// world is a control plane whose Secrets are encrypted.
type world struct {
	*testing.T
	plane *controlplane.ControlPlane
	file  string // the encryption configuration
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, file: filepath.Join(t.TempDir(), "enc.yaml")}
	w.configure("key1")
	w.plane = controlplane.Options{APIServerArgs: []string{"--encryption-provider-config=" + w.file}}.StartFor(t)
	client := w.client()
	for i := range secrets {
		_, err := client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s-%03d", i)}, StringData: map[string]string{"password": content},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) client() *kubernetes.Clientset {
	w.Helper()
	client, err := kubernetes.NewForConfig(w.plane.Config())
	if err != nil {
		w.Fatal(err)
	}
	return client
}

func (w *world) configure(keys ...string) {
	w.Helper()
	if err := os.WriteFile(w.file, []byte(configuration(keys...)), 0o600); err != nil {
		w.Fatal(err)
	}
}

// stored counts the Secrets in etcd by the key in front of them. It shares no code with what it checks.
func (w *world) stored() map[string]int {
	w.Helper()
	all, err := w.plane.Etcd().Get(w.Context(), "/registry/secrets/default/", clientv3.WithPrefix())
	if err != nil {
		w.Fatal(err)
	}
	counts := map[string]int{}
	for _, kv := range all.Kvs {
		form := "plain"
		for _, key := range []string{"key1", "key2"} {
			if strings.HasPrefix(string(kv.Value), "k8s:enc:aescbc:v1:"+key+":") {
				form = key
			}
		}
		counts[form]++
	}
	return counts
}

func (w *world) wantStored(when string, want map[string]int) {
	w.Helper()
	if diff := cmp.Diff(want, w.stored()); diff != "" {
		w.Errorf("%s (-want +stored):\n%s", when, diff)
	}
}

// rewriter is one for a process that starts now.
func (w *world) rewriter(config *rest.Config, o resource.Options) *resource.Rewriter {
	w.Helper()
	o.Settle = -1
	r, err := resource.New(config, o)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *world) plan(r *resource.Rewriter) resource.Plan {
	w.Helper()
	catalog, err := r.Catalog(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	found, ok := catalog.Find("secrets")
	if !ok {
		w.Fatal("no secrets")
	}
	facts, err := r.Observe(w.Context(), found, nil)
	if err != nil {
		w.Fatal(err)
	}
	p := resource.PlanFor(facts)
	if p.State != decision.Ready {
		w.Fatalf("the plan is %s: %v", p.State, p.Blockers)
	}
	return p
}

// run makes a whole run.
func (w *world) run(ctx context.Context, r *resource.Rewriter, onObject func(walk.Report)) (walk.Report, bool) {
	w.Helper()
	_, resumes, err := r.Begin(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	w.settle(r)
	report, err := r.Rewrite(ctx, w.plan(r), onObject)
	if err != nil && ctx.Err() == nil {
		w.Fatal(err)
	}
	return report, resumes
}

// settle waits for leases that are not renewed yet.
func (w *world) settle(r *resource.Rewriter) {
	w.Helper()
	for {
		err := r.Settle(w.Context())
		var wait *resource.WaitError
		if err == nil {
			return
		}
		if !errors.As(err, &wait) || len(wait.Different) > 0 {
			w.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// TestKeyRotation is the whole story: two API servers of which one has the new key, a run that waits, one that is killed half-way,
// one that resumes, and one that finds nothing to do.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wantStored("before", map[string]int{"key1": secrets})

	w.configure("key2", "key1")
	second, err := w.plane.StartSecond(t.Context(), "second-server")
	if err != nil {
		t.Fatal(err)
	}
	hash := resource.ConfigurationHash([]byte(configuration("key2", "key1")))
	balanced := balance(t, w.plane.Config(), second.Config())
	var wait *resource.WaitError
	err = w.rewriter(balanced, resource.Options{Configuration: hash}).Settle(t.Context())
	first, identityErr := w.plane.Identity(t.Context())
	if identityErr != nil {
		t.Fatal(identityErr)
	}
	if !errors.As(err, &wait) || len(wait.Different) != 1 || !strings.Contains(wait.Different[0], first) {
		t.Fatalf("one of two API servers has the old configuration, and the run waits for %v", err)
	}
	w.wantStored("while it waits", map[string]int{"key1": secrets})

	if err := w.plane.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	options := resource.Options{Configuration: hash, PageObjects: 10, Limiter: walk.NewLimiter(walk.Limits{MaxInFlight: 2})}
	ctx, kill := context.WithCancel(t.Context())
	report, _ := w.run(ctx, w.rewriter(balanced, options), func(now walk.Report) {
		if now.Counts.Total() == 25 {
			kill()
		}
	})
	kill()
	half := w.stored()
	if half["key1"] == 0 || half["key2"] < 25 || int64(half["key2"]) != report.Counts.Migrated {
		t.Fatalf("the run that was killed reports %+v, and etcd has %v", report.Counts, half)
	}
	w.checkJournal()
	w.checkJournalOfOtherReleases(w.rewriter(balanced, resource.Options{Configuration: hash, Resume: true}), hash)

	options.Resume = true
	report, resumes := w.run(t.Context(), w.rewriter(balanced, options), nil)
	if want := int64(secrets - half["key2"]); !resumes || report.Counts.Migrated != want || report.Counts.Skipped != int64(half["key2"]) {
		t.Errorf("resumed: %v, with %+v, want %d migrated and the others skipped", resumes, report.Counts, want)
	}
	w.wantStored("after", map[string]int{"key2": secrets})

	r := w.rewriter(balanced, resource.Options{Configuration: hash})
	if report, resumes = w.run(t.Context(), r, nil); resumes || report.Counts.Unchanged != secrets {
		t.Errorf("once more, resumed: %v, with %+v, want %d unchanged", resumes, report.Counts, secrets)
	}
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = w.client().CoreV1().ConfigMaps("kube-system").Get(t.Context(), resource.JournalName, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("after the end, the journal is there: %v", err)
	}
	w.checkFolders(r)
}

// TestKeyRemovedTooEarly: the API server lacks the key of some objects. A plan says so, as does a run, which writes nothing. etcd has the
// name of the key. The objects are ControllerRevisions, because an API server that can't read Secrets does not get ready.
func TestKeyRemovedTooEarly(t *testing.T) {
	t.Parallel()
	w := &world{T: t, file: filepath.Join(t.TempDir(), "enc.yaml")}
	configure := func(keys ...string) {
		text := strings.Replace(configuration(keys...), "resources: [secrets]", "resources: [controllerrevisions.apps]", 1)
		if err := os.WriteFile(w.file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	restart := func(keys ...string) {
		configure(keys...)
		if err := w.plane.RestartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	create := func(name string) {
		r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}, Revision: 1, Data: runtime.RawExtension{Raw: []byte("{}")}}
		if _, err := w.client().AppsV1().ControllerRevisions("default").Create(t.Context(), r, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	configure("key1")
	var err error
	w.plane, err = controlplane.Start(t.Context(), controlplane.Options{APIServerArgs: []string{"--encryption-provider-config=" + w.file}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.plane.Stop() })
	create("old")
	restart("key2", "key1")
	create("a-new-one") // is listed first
	restart("key2")

	r := w.rewriter(w.plane.Config(), resource.Options{})
	observe := func() resource.Plan {
		catalog, err := r.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found, _ := catalog.Find("controllerrevisions")
		facts, err := r.Observe(t.Context(), found, nil)
		if err != nil {
			t.Fatal(err)
		}
		return resource.PlanFor(facts)
	}
	p := observe()
	if p.State != decision.Blocked || len(p.Blockers) != 1 || p.Blockers[0].Reason != decision.ReasonEncryptionKeyMissing {
		t.Fatalf("the plan is %s: %v, want it blocked by %s", p.State, p.Blockers, decision.ReasonEncryptionKeyMissing)
	}
	if err := fixtest.All(p.Blockers); err != nil {
		t.Error(err)
	}
	if p.Encrypted != "/registry/controllerrevisions/default/old" {
		t.Errorf("the plan names %q in etcd, want the object with the old key", p.Encrypted)
	}
	form, err := etcdverify.FormAt(t.Context(), kv{w.plane.Etcd()}, p.Encrypted)
	if err != nil || form != "k8s:enc:aescbc:v1:key1" {
		t.Errorf("etcd has it as %q, %v", form, err)
	}
	var blocked *decision.BlockedError
	if _, err := r.Rewrite(t.Context(), p, nil); !errors.As(err, &blocked) {
		t.Errorf("run: %v, want it blocked", err)
	}
	restart("key2", "key1") // as the remedy says
	if p := observe(); p.State != decision.Ready {
		t.Errorf("after the remedy, the plan is %s: %v", p.State, p.Blockers)
	}
}

// checkFolders: each resource that has objects has them in etcd where a verification looks for them.
func (w *world) checkFolders(r *resource.Rewriter) {
	w.Helper()
	catalog, err := r.Catalog(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	found := 0
	for _, one := range catalog.All() {
		facts, err := r.Observe(w.Context(), one, nil)
		if err != nil {
			w.Fatal(err)
		}
		if facts.Objects == nil || *facts.Objects == 0 {
			continue
		}
		found++
		folder := etcdverify.Folder(one.GroupResource(), one.Custom)
		forms, err := etcdverify.ScanForms(w.Context(), kv{w.plane.Etcd()}, etcdverify.DefaultPrefix, folder, "")
		if err != nil || forms.Objects == 0 || !forms.Uniform() {
			w.Errorf("%s has %d objects, and etcd has %+v under %s: %v", one.Name(), *facts.Objects, forms, folder, err)
		}
	}
	if found < 8 {
		w.Errorf("%d resources have objects, want more", found)
	}
}

// kv reads etcd for etcdverify.
type kv struct{ *clientv3.Client }

func (c kv) Range(ctx context.Context, from, to string, limit, revision int64) ([]etcdverify.Pair, int64, error) {
	answer, err := c.Get(ctx, from, clientv3.WithRange(to), clientv3.WithLimit(limit), clientv3.WithRev(revision))
	if err != nil {
		return nil, 0, err
	}
	pairs := make([]etcdverify.Pair, len(answer.Kvs))
	for i, one := range answer.Kvs {
		pairs[i] = etcdverify.Pair{Key: string(one.Key), Value: one.Value}
	}
	return pairs, answer.Header.Revision, nil
}

// checkJournal finds content of Secrets in the journal.
func (w *world) checkJournal() {
	w.Helper()
	journal, err := w.client().CoreV1().ConfigMaps("kube-system").Get(w.Context(), resource.JournalName, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	text := journal.String()
	encoded := base64.StdEncoding.EncodeToString([]byte(content))
	if !strings.Contains(text, "secrets") || strings.Contains(text, content) || strings.Contains(text, encoded) {
		w.Errorf("the journal is %s", text)
	}
}

// checkJournalOfOtherReleases: the run that was killed has left what v0.1.0 leaves. The journal of a newer release is left alone.
func (w *world) checkJournalOfOtherReleases(r *resource.Rewriter, hash string) {
	w.Helper()
	client := w.client().CoreV1().ConfigMaps("kube-system")
	journal, err := client.Get(w.Context(), resource.JournalName, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	const key = "journal.json"
	ours := journal.Data[key]
	var now struct {
		Servers   []string
		Resources map[string]struct{ ResourceVersion, Cursor string }
	}
	if err := json.Unmarshal([]byte(ours), &now); err != nil {
		w.Fatal(err)
	}
	frozen := strings.NewReplacer(
		"apiserver-one_00000000-0000-4000-8000-000000000002", strings.Join(now.Servers, `","`), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", hash,
		"1000002", now.Resources["secrets"].ResourceVersion, "default/s-039", now.Resources["secrets"].Cursor, `,"complete":true`, "",
	).Replace(formattest.Frozen(w, "resource-run.json"))
	if ours != frozen {
		w.Errorf("the journal is otherwise than that of %s:\n got %s\nwant %s", formattest.Oldest, ours, frozen)
	}
	store := func(text string) string {
		w.Helper()
		journal.Data[key] = text
		if journal, err = client.Update(w.Context(), journal, metav1.UpdateOptions{}); err != nil {
			w.Fatal(err)
		}
		return journal.ResourceVersion
	}
	version := store(formattest.Newer(w, "resource-run.json"))
	var newer *format.NewerError
	if _, resumes, err := r.Begin(w.Context()); !errors.As(err, &newer) || resumes || !strings.Contains(err.Error(), "configmap kube-system/"+resource.JournalName+" has format 2") {
		w.Errorf("a journal of a newer release is read: resumes %v, %v", resumes, err)
	}
	if there, err := client.Get(w.Context(), resource.JournalName, metav1.GetOptions{}); err != nil || there.ResourceVersion != version {
		w.Errorf("it was written: %v", err)
	}
	store(frozen)
}

// balance is a load balancer that hands out connections in turn.
func balance(t *testing.T, servers ...*rest.Config) *rest.Config {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	var turn atomic.Int64
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(client, servers[int(turn.Add(1))%len(servers)].Host)
		}
	}()
	config := rest.CopyConfig(servers[0])
	config.Host = "https://" + listener.Addr().String()
	return config
}

// forward copies both ways until one side ends.
func forward(client net.Conn, host string) {
	defer func() { _ = client.Close() }()
	to, err := url.Parse(host)
	if err != nil {
		return
	}
	server, err := net.Dial("tcp", to.Host)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}
