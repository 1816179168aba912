package e2e_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/walk"
)

// TestInstall: the chart of a release installs the manager, which migrates by itself with the default values, and its removal keeps the
// CRDs of the chart, the migration and every object.
func TestInstall(t *testing.T) {
	s := newStage(t, version)
	g := s.define("install.example.com", 500)
	s.install(version, merged(g.values(), map[string]any{"operator": map[string]any{"replicas": 2}}))
	s.expectReady(version, 2)
	watched := s.watchMigration(g.crd())
	g.flip()
	g.awaitMigrated()
	expectSteady(t, watched())
	s.expectMemory()
	s.expectDescribed(g.crd(), "testdata/described.txt")
	s.expectReady(version, 2)

	s.helm("uninstall", manager, "--wait")
	s.await("the pods to be gone", func(context.Context) error {
		if left := s.pods(); len(left) > 0 {
			return fmt.Errorf("%d pods are left", len(left))
		}
		return nil
	})
	if err := s.Get(t.Context(), client.ObjectKey{Name: g.crd()}, &v1alpha1.CRDMigration{}); err != nil {
		t.Errorf("the migration is not kept: %v", err)
	}
	roles, err := s.Clients.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + manager})
	if err != nil || len(roles.Items) > 0 {
		t.Errorf("roles are left: %v: %v", roles.Items, err)
	}
	g.expectMigrated()
}

// expectMemory fails unless each pod has allocated at most half of the memory that the chart requests for it: pages of its program may
// need as much.
func (s *stage) expectMemory() {
	s.t.Helper()
	var used map[string]usage
	s.await("the kubelet to count the memory of the pods", func(context.Context) error {
		used = s.memory()
		for _, p := range s.pods() {
			if used[p.Name].RSS == 0 {
				return fmt.Errorf("it has counted %v, and nothing for pod %s", used, p.Name)
			}
		}
		return nil
	})
	s.t.Logf("memory of the pods in MiB: %+v", used)
	for _, p := range s.pods() {
		requested := uint64(p.Spec.Containers[0].Resources.Requests.Memory().Value()) >> 20
		if requested == 0 || used[p.Name].RSS > requested/2 {
			s.t.Errorf("pod %s has allocated %d MiB, want at most half of its request of %d MiB", p.Name, used[p.Name].RSS, requested)
		}
	}
}

// watchAgain is how long a watch that has ended waits, such as of an API server that starts again.
const watchAgain = 200 * time.Millisecond

// watchMigration runs kubectl get --watch from the creation of a migration until stop is called, which returns the lines. It runs it again
// when an API server has ended the watch.
func (s *stage) watchMigration(name string) (stop func() []string) {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	lines := make(chan []string, 1)
	go func() {
		var all strings.Builder
		out, err := s.command(ctx, s.kubectlProgram(), "wait", "--for=create", "--timeout=5m", "crdmigration/"+name)
		if err != nil {
			all.WriteString(out)
		}
		for err == nil && walk.Wait(ctx, watchAgain) == nil {
			out, _ := s.command(ctx, s.kubectlProgram(), "get", "crdmigration", name, "--watch", "--no-headers") // fails when it is stopped
			all.WriteString(out)
		}
		lines <- strings.Split(strings.TrimSpace(all.String()), "\n")
	}()
	return func() []string { cancel(); return <-lines }
}

// expectSteady fails unless the lines show a progress that only grows, towards one number that is the last one.
func expectSteady(t *testing.T, lines []string) {
	t.Helper()
	expectGrowing(t, lines)
	all := progressIn(lines)
	for i := range all {
		if all[i].total != all[0].total {
			t.Errorf("progress is of %s objects, and of %s before", all[i].total, all[0].total)
		}
	}
}

// expectGrowing fails unless the lines show a progress that only grows, and that ends with all objects.
func expectGrowing(t *testing.T, lines []string) {
	t.Helper()
	t.Logf("kubectl get --watch:\n%s", strings.Join(lines, "\n"))
	var before progress
	for _, p := range progressIn(lines) {
		if p.done < before.done {
			t.Errorf("progress is %+v, and %+v before", p, before)
		}
		before = p
	}
	if before.total != strconv.Itoa(before.done) {
		t.Errorf("the last progress is %+v", before)
	}
}

// progress is what the column of a CRDMigration shows. The total may be unknown.
type progress struct {
	done  int
	total string
}

var progressColumn = regexp.MustCompile(`\b(\d+)/(\d+|\?)`)

func progressIn(lines []string) []progress {
	var all []progress
	for _, line := range lines {
		if found := progressColumn.FindStringSubmatch(line); found != nil {
			done, _ := strconv.Atoi(found[1])
			all = append(all, progress{done, found[2]})
		}
	}
	return all
}
