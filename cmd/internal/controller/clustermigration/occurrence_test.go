package clustermigration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/godwit-dev/godwit/cmd/hub"
	hubapi "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	hubmanager "github.com/godwit-dev/godwit/cmd/hub/manager"
)

// TestEventsAreDocumented compares the events that docs/reference/events.md lists with those that the manager
// records, in both directions.
func TestEventsAreDocumented(t *testing.T) {
	documented := map[string][]string{}
	for _, r := range hubapi.Reasons.Reasons() {
		for _, o := range Occurrences(r) {
			if o.EventType != "" {
				documented[r.Name] = append(documented[r.Name], o.EventType)
			}
		}
	}
	source := readSource(t)
	recorded := source.events
	add := func(before, after hub.State) hub.State {
		for _, a := range hubmanager.Announcements(before, after) {
			if !slices.Contains(recorded[a.Reason], a.Type) {
				recorded[a.Reason] = append(recorded[a.Reason], a.Type)
			}
		}
		return after
	}
	for reason := range source.failures {
		rollback := add(hub.State{Phase: hubapi.PhaseDeploying, Stage: hubapi.PhaseDeploying},
			hub.State{Phase: hubapi.PhaseRollbacking, Stage: hubapi.PhaseRollbacking, RollbackStage: hubapi.PhaseDeploying, Reason: reason})
		end := rollback
		end.Phase, end.Turn = hubapi.PhaseFailed, 99
		add(rollback, end)
		add(rollback, hub.State{Phase: hubapi.PhaseCompleted, Reason: reason})
	}
	run(add)
	if diff := cmp.Diff(documented, recorded); diff != "" {
		t.Errorf("types of the events of each reason (-documented +recorded):\n%s", diff)
	}
}

// run takes a migration through states in which it has not failed: one that moves a cluster, one that
// waits for another, and one that ends while a hub does not answer. The target hub has denied a request, and has issued a certificate to a
// cluster that a user has deleted.
func run(add func(before, after hub.State) hub.State) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	spec := hubapi.ManagedClusterMigrationSpec{From: "hub1", To: "hub2", IncludedManagedClusters: []hubapi.ClusterName{"c1", "c2"}}
	step := func(s hub.State, e hub.Event) hub.State { return add(s, hub.Step(s, e)) }
	s := step(hub.New(spec), hub.Start{At: now})
	step(s, hub.Wait{At: now, For: "other"})
	for !s.Settled() {
		e := hub.Due(s)[0]
		if s.Phase == hubapi.PhaseRegistering && e.Party != hub.Manager {
			step(s, hub.Unsent{At: now, Key: e.Key, Message: "denied"})
		}
		if s.Phase == hubapi.PhaseCleaning {
			step(s, hub.Tick{At: now.Add(time.Hour)})
		}
		report := hub.Report{At: now, Party: e.Party, Stage: e.Stage, Attempt: e.Attempt, Finished: true}
		for _, o := range e.Orders {
			report.Done = append(report.Done, o.Clusters...)
		}
		if s.Phase == hubapi.PhaseRegistering && e.Party == hub.Target {
			report.DeniedRequests, report.Certificates = []string{"csr-1"}, map[string]time.Time{"c2": now}
			report.Gone = map[string]string{"c2": "a user has deleted its ManagedCluster"}
		}
		s = step(s, report)
	}
}

// source is what the code of a migration says about reasons.
type source struct {
	// events are those that are recorded with a constant reason, by the reason.
	events map[string][]string
	// failures are the reasons for which a migration fails, or moves some clusters only.
	failures map[string]bool
}

// readSource parses packages cmd/hub and cmd/hub/manager. A constant reason is that of an event, of a condition (in
// a summary, or in a file status.go), or of a failure.
func readSource(t *testing.T) source {
	t.Helper()
	const repository = "../../../.."
	values := constants(t, filepath.Join(repository, "cmd", "hub", "api", "v1alpha1", "conditions.go"))
	found := source{map[string][]string{}, map[string]bool{}}
	for _, pattern := range []string{"cmd/hub/*.go", "cmd/hub/manager/*.go"} {
		files, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no file is %s: %v", pattern, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "status.go" {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool { return found.visit(n, values) })
		}
	}
	return found
}

// visit returns whether to visit what is in the node.
func (s source) visit(n ast.Node, values map[string]string) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return n.Name.Name != "WhyUnreadable" // which is for users of a state, not for events
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "event" && len(n.Args) == 4 {
			kind := map[string]string{"EventTypeNormal": corev1.EventTypeNormal, "EventTypeWarning": corev1.EventTypeWarning}[selector(n.Args[1])]
			if reason := values[selector(n.Args[2])]; reason != "" && kind != "" && !slices.Contains(s.events[reason], kind) {
				s.events[reason] = append(s.events[reason], kind)
			}
			return false
		}
	case *ast.CompositeLit:
		if kind, ok := n.Type.(*ast.SelectorExpr); ok && kind.Sel.Name == "Summary" {
			return false
		}
	case *ast.SelectorExpr:
		if reason := values[selector(n)]; reason != "" {
			s.failures[reason] = true
		}
	}
	return true
}

// selector is the name of what is selected, of a reason without its field Name.
func selector(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if of, ok := s.X.(*ast.SelectorExpr); ok && s.Sel.Name == "Name" {
			return of.Sel.Name
		}
		return s.Sel.Name
	}
	return ""
}

// constants are the names of the reasons, by those of their variables.
func constants(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"ReasonNewerFormat": hubapi.ReasonNewerFormat.Name} // declared by package format
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 && strings.HasPrefix(spec.Names[0].Name, "Reason") {
			ast.Inspect(spec.Values[0], func(n ast.Node) bool {
				if field, ok := n.(*ast.KeyValueExpr); ok && field.Key.(*ast.Ident).Name == "Name" { //nolint:forcetypeassert // the field of a struct
					all[spec.Names[0].Name] = strings.Trim(field.Value.(*ast.BasicLit).Value, `"`) //nolint:forcetypeassert // declared by a literal
				}
				return true
			})
		}
		return true
	})
	if len(all) == 1 {
		t.Fatalf("%s declares no other reason", path)
	}
	return all
}
