package externalname_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/externalname/crossplane/conformance"
)

// personsSetUp is a healthy provider of persons.
func personsSetUp(further ...managed.ReconcilerOption) func(*wire) conformance.Provider {
	return func(w *wire) conformance.Provider {
		return conformance.Provider{AddToScheme: addToScheme, Setup: func(m manager.Manager) error {
			options, err := recovering(w).Options(m, event.NewAPIRecorder(m.GetEventRecorderFor("conformance")))
			if err != nil {
				return err
			}
			return addController(m, groupVersion.WithKind("Person"), append(options, further...)...)
		}}
	}
}

// lines keeps what is printed, with a function that each line meets.
type lines struct {
	mu   sync.Mutex
	data bytes.Buffer
	seen func(line string)
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen != nil {
		l.seen(string(p))
	}
	return l.data.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.data.String()
}

// Each check is printed when it ends, not at the end of the run.
func TestConformancePrintsEachCheck(t *testing.T) {
	t.Parallel()
	harness := harnessFor("Person", personsSetUp())
	harness.Only = []conformance.CheckName{conformance.CreateSetsName, conformance.MissingParentIsNoDrift, conformance.DeleteLeavesNothing}
	harness.Parallel = 1
	open, opened := harness.Open, 0
	atOpen := map[int]string{}
	printed := &lines{}
	harness.Progress = printed
	harness.Open = func(ctx context.Context, namespace string) (conformance.System, conformance.Provider, error) {
		atOpen[opened] = printed.String()
		opened++
		return open(ctx, namespace)
	}
	if _, err := conformance.Prove(t.Context(), checkedPerson(), harness); err != nil {
		t.Fatal(err)
	}
	got := printed.String()
	for _, want := range []string{"1/3 ", "2/3 ", "3/3 ", "of Person: ", "CreateSetsName Passed (", "DeleteLeavesNothing Passed (", "MissingParentIsNoDrift DoesNotApply ("} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if opened != 2 || !strings.Contains(atOpen[1], "/3 ") {
		t.Errorf("before the second of %d external systems was opened, the run had printed %q", opened, atOpen[1])
	}
}

// A run whose time is over says so for each check that did not end, and does not blame the provider.
func TestConformanceEndsInTime(t *testing.T) {
	t.Parallel()
	harness := harnessFor("Person", personsSetUp())
	harness.Only = []conformance.CheckName{conformance.CreateSetsName, conformance.UpToDateIsNotUpdated}
	harness.Parallel = 1
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	harness.Progress = &lines{seen: func(string) { cancel() }}
	report, err := conformance.Prove(ctx, checkedPerson(), harness)
	if err != nil {
		t.Fatal(err)
	}
	if passed := report.With(conformance.Passed); len(passed) != 1 {
		t.Errorf("%d checks passed before the time was over: %v", len(passed), passed)
	}
	over := 0
	for _, result := range report.With(conformance.NotChecked) {
		if strings.Contains(result.Detail, "the time is over: raise -timeout") {
			over++
		}
	}
	if over != 1 || len(report.With(conformance.Failed)) != 0 {
		t.Errorf("%s: %+v", report, report.With(conformance.Failed))
	}
}

// Parallel checks whose providers would see each other's objects do not run.
func TestConformanceRefusesProvidersThatSeeEachOther(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		parallel   int
		watches    bool
		wantRefuse bool
	}{
		"a program that watches all namespaces, in parallel":     {2, false, true},
		"a program that watches its namespace, in parallel":      {2, true, false},
		"a program that watches all namespaces, one by one":      {1, false, false},
		"a program that watches its own namespace, one after it": {0, true, false},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			started := make(chan string, 10)
			harness := harnessFor("Person", func(*wire) conformance.Provider {
				return conformance.Provider{WatchesNamespace: tc.watches, Command: func(ctx context.Context, kubeconfig string) *exec.Cmd {
					content, err := os.ReadFile(kubeconfig)
					if err != nil {
						t.Error(err)
					}
					started <- string(content)
					return exec.CommandContext(ctx, "true")
				}}
			})
			harness.Only, harness.Parallel = []conformance.CheckName{conformance.CreateSetsName}, tc.parallel
			harness.Timeout = time.Second
			report, err := conformance.Prove(t.Context(), checkedPerson(), harness)
			if err != nil {
				t.Fatal(err)
			}
			result := report.Of(conformance.CreateSetsName)
			refused := result.State == conformance.NotChecked && strings.Contains(result.Detail, "parallel checks see each other's objects")
			if refused != tc.wantRefuse {
				t.Errorf("%s: %s", result.State, result.Detail)
			}
			if tc.wantRefuse {
				return
			}
			if kubeconfig := <-started; !strings.Contains(kubeconfig, "namespace: conformance-") {
				t.Errorf("the kubeconfig does not have the namespace of the check:\n%s", kubeconfig)
			}
		})
	}
}

// If an object is not deleted within the creation grace of crossplane-runtime, the evidence names the grace.
func TestConformanceNamesTheCreationGrace(t *testing.T) {
	t.Parallel()
	harness := harnessFor("Person", personsSetUp(managed.WithCreationGracePeriod(30*time.Second)))
	harness.Only = []conformance.CheckName{conformance.DeleteLeavesNothing}
	harness.Timeout = 5 * time.Second
	report, err := conformance.Prove(t.Context(), checkedPerson(), harness)
	if err != nil {
		t.Fatal(err)
	}
	result := report.Of(conformance.DeleteLeavesNothing)
	for _, want := range []string{"the object is not deleted", "For 30s after a creation, crossplane-runtime does not believe", "Harness.Timeout than 5s", "managed.WithCreationGracePeriod"} {
		if result.State != conformance.Failed || !strings.Contains(result.Detail, want) {
			t.Errorf("%s, %q is missing: %s", result.State, want, result.Detail)
		}
	}
}
