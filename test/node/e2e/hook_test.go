package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/test/policy"
)

// hookJob is the name of the Job of examples/upgrade.
const hookJob = "godwit-migrate"

// product is an operator's chart with the hook of examples/upgrade, in a namespace of its own. The release has the name product.
type product struct {
	s         *stage
	namespace string
	chart     string
	g         *geese
}

// newProduct installs the release whose CRD has v1 alone, makes objects, and upgrades to the release that stores v2. The hook gets the
// further flags of godwit crd run.
func newProduct(s *stage, name string, objects int, args ...string) *product {
	s.t.Helper()
	p := &product{s: s, namespace: name, chart: s.t.TempDir()}
	if err := s.AwaitNamespace(s.t.Context(), name, restricted); err != nil {
		s.t.Fatal(err)
	}
	hook, err := os.ReadFile("../../../examples/upgrade/helm/templates/godwit.yaml")
	if err != nil {
		s.t.Fatal(err)
	}
	p.write("templates/godwit.yaml", string(hook))
	p.write("values.yaml", fmt.Sprintf("godwit: {image: '%s:%s', crds: [geese.%s.example.com], args: [%s]}\n",
		imageRepository, version, name, strings.Join(args, ", ")))
	p.g = &geese{s: s, group: name + ".example.com"}
	p.serve("1.0.0", servedVersion("v1", true))
	s.mustRun(s.helmProgram, p.upgrade("--install")...)
	p.g.fill(objects)
	p.serve("1.1.0", servedVersion("v1", false), servedVersion("v2", true))
	s.mustRun(s.helmProgram, p.upgrade()...)
	p.g.noteFlip()
	s.t.Cleanup(func() {
		if out, err := s.command(context.Background(), s.helmProgram, "uninstall", "product", "-n", name, "--wait"); err != nil {
			s.t.Errorf("%v: %s", err, out)
		}
	})
	return p
}

func (p *product) write(name, content string) {
	p.s.t.Helper()
	path := filepath.Join(p.chart, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		p.s.t.Fatal(err)
	}
}

// serve writes the chart of a release whose CRD has these versions.
func (p *product) serve(release string, versions ...apiextensionsv1.CustomResourceDefinitionVersion) {
	p.s.t.Helper()
	p.write("Chart.yaml", "apiVersion: v2\nname: product\nversion: "+release+"\n")
	crd := p.g.definition(versions...)
	crd.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	text, err := yaml.Marshal(crd)
	if err != nil {
		p.s.t.Fatal(err)
	}
	p.write("templates/crd.yaml", strings.ReplaceAll(string(text), "status: {}\n", ""))
}

// upgrade are the arguments of Helm. It waits for the hook.
func (p *product) upgrade(more ...string) []string {
	return append([]string{"upgrade", "product", p.chart, "--namespace=" + p.namespace, "--wait", "--timeout=8m"}, more...)
}

// drop upgrades to the release without v1, for which the hook must have migrated.
func (p *product) drop() (string, error) {
	p.s.t.Helper()
	p.serve("2.0.0", servedVersion("v2", true))
	return p.s.command(p.s.t.Context(), p.s.helmProgram, p.upgrade()...)
}

// expectDropped fails unless all objects are migrated, v1 is gone, and the hook has left nothing.
func (p *product) expectDropped() {
	p.s.t.Helper()
	p.g.expectMigrated()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := p.s.Get(p.s.t.Context(), client.ObjectKey{Name: p.g.crd()}, crd); err != nil || len(crd.Spec.Versions) != 1 {
		p.s.t.Errorf("the CRD has %d versions: %v", len(crd.Spec.Versions), err)
	}
	err := p.s.Get(p.s.t.Context(), client.ObjectKey{Namespace: p.namespace, Name: hookJob}, &batchv1.Job{})
	if !apierrors.IsNotFound(err) {
		p.s.t.Errorf("the Job of the hook is left: %v", err)
	}
}

// job waits for a pod of the hook.
func (p *product) jobPod(what string, wanted func(*corev1.Pod) bool) corev1.Pod {
	p.s.t.Helper()
	var found corev1.Pod
	p.s.await("a pod of the hook "+what, func(ctx context.Context) error {
		list := &corev1.PodList{}
		if err := p.s.List(ctx, list, client.InNamespace(p.namespace), client.MatchingLabels{"batch.kubernetes.io/job-name": hookJob}); err != nil {
			return err
		}
		i := slices.IndexFunc(list.Items, func(pod corev1.Pod) bool { return wanted(&pod) })
		if i < 0 {
			return fmt.Errorf("there are %d pods", len(list.Items))
		}
		found = list.Items[i]
		return nil
	})
	return found
}

// hookSucceeds is the namespace of TestHookSucceeds.
const hookSucceeds = "hook-succeeds"

// TestHookSucceeds: Helm runs the hook before it removes a version of the CRD. The hook has exactly the permissions that it uses.
func TestHookSucceeds(t *testing.T) {
	t.Parallel() // most of the time, the hook waits for API servers
	p := newProduct(newStage(t, version), hookSucceeds, 200)
	if out, err := p.drop(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.expectDropped()
	p.expectPermissionsUsed()
}

// TestHookBlocked: a policy denies the writes. The hook fails, says why in its log, and Helm does not change the CRD. Without the policy,
// the same command succeeds.
func TestHookBlocked(t *testing.T) {
	t.Parallel() // most of the time, the hook waits for API servers
	p := newProduct(newStage(t, version), "hook-blocked", 200)
	denial := policy.Policy{
		Name: "hook-blocked", Group: p.g.group, Resource: "geese",
		Validations: []admissionv1.Validation{{Expression: "false", Message: "geese are not changed today"}},
	}
	if err := denial.Create(t.Context(), p.s.Clients); err != nil {
		t.Fatal(err)
	}
	if err := policy.Await(t.Context(), true, p.g.tryUpdate); err != nil {
		t.Fatal(err)
	}
	out, err := p.drop()
	if err == nil {
		t.Fatalf("Helm succeeds although no object may be written:\n%s", out)
	}
	failed := p.jobPod("has failed", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	said, err := p.s.PodLog(t.Context(), p.namespace, failed.Name)
	if err != nil || !strings.Contains(said, "geese are not changed today") {
		t.Errorf("the log of the hook does not say why it has failed: %v\n%s", err, said)
	}
	t.Logf("the hook says:\n%s", said)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := p.s.Get(t.Context(), client.ObjectKey{Name: p.g.crd()}, crd); err != nil || len(crd.Spec.Versions) != 2 {
		t.Errorf("the CRD has %d versions, want 2: %v", len(crd.Spec.Versions), err)
	}
	if err := denial.Delete(t.Context(), p.s.Clients); err != nil {
		t.Fatal(err)
	}
	if err := policy.Await(t.Context(), false, p.g.tryUpdate); err != nil {
		t.Fatal(err)
	}
	if out, err := p.drop(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.expectDropped()
}

// TestHookEvicted: the pod of the hook is evicted while it writes, more often than its Job bears failures. Each time the Job starts another
// pod, which continues, and the last one ends the migration.
func TestHookEvicted(t *testing.T) {
	t.Parallel() // most of the time, the hook waits for API servers
	p := newProduct(newStage(t, version), "hook-evicted", 600, "--max-writes-per-second=20")
	ended := make(chan error, 1)
	go func() {
		out, err := p.drop()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		ended <- err
	}()
	var evicted []types.UID
	for {
		now := p.jobPod("to work", func(pod *corev1.Pod) bool {
			return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && !slices.Contains(evicted, pod.UID)
		})
		job := &batchv1.Job{}
		if err := p.s.Get(t.Context(), client.ObjectKey{Namespace: p.namespace, Name: hookJob}, job); err != nil {
			t.Fatal(err)
		}
		if len(evicted) > int(*job.Spec.BackoffLimit) {
			break
		}
		p.g.awaitUnderWay()
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: now.Name}}
		if err := p.s.Clients.PolicyV1().Evictions(p.namespace).Evict(t.Context(), eviction); err != nil {
			t.Fatal(err)
		}
		p.g.expectUnderWay()
		evicted = append(evicted, now.UID)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	p.expectDropped()
}
