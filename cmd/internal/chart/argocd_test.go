package chart_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	hubapi "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/reason"
	"github.com/godwit-dev/godwit/cmd/internal/status"
)

// health is what a health check of Argo CD returns.
type health struct{ Status, Message string }

// healthChecks are the scripts that Argo CD has after the kustomization of the example is applied, by their keys.
func healthChecks(t *testing.T) map[string]string {
	t.Helper()
	const prefix = "resource.customizations.health."
	checks := map[string]string{}
	for _, o := range kustomized(t, pieces+"/argocd/health") {
		if o.GetKind() != "ConfigMap" || o.GetName() != "argocd-cm" || o.GetNamespace() != "argocd" {
			t.Fatalf("%s %s/%s is not the ConfigMap of Argo CD", o.GetKind(), o.GetNamespace(), o.GetName())
		}
		data, _, err := unstructured.NestedStringMap(o.Object, "data")
		if err != nil {
			t.Fatal(err)
		}
		for key, script := range data {
			kind, found := strings.CutPrefix(key, prefix)
			if !found {
				t.Errorf("key %s is not a health check", key)
			}
			checks[kind] = script
		}
	}
	return checks
}

// healthOf runs a script as Argo CD does: the object is in the variable obj, of the libraries only package, base and table are open,
// and a second is enough.
func healthOf(t *testing.T, script string, object any) health {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	l.SetContext(ctx)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	l.SetGlobal("obj", luaValue(l, content))
	if err := l.DoString(script); err != nil {
		t.Fatal(err)
	}
	table, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %v", l.Get(-1))
	}
	return health{table.RawGetString("status").String(), table.RawGetString("message").String()}
}

// luaValue converts a value of JSON. Numbers of Lua are floating-point numbers.
func luaValue(l *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case nil:
		return lua.LNil
	case bool:
		return lua.LBool(value)
	case string:
		return lua.LString(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case []any:
		table := l.CreateTable(len(value), 0)
		for _, item := range value {
			table.Append(luaValue(l, item))
		}
		return table
	case map[string]any:
		table := l.CreateTable(0, len(value))
		for key, item := range value {
			table.RawSetString(key, luaValue(l, item))
		}
		return table
	}
	panic(fmt.Sprintf("%T is not a value of JSON", value))
}

// statusesOf has Argo CD's status for the condition that is True.
var statusesOf = map[string]string{status.Ready: "Healthy", status.Reconciling: "Progressing", status.Stalled: "Degraded", "": "Suspended"}

// TestArgoCDHealth has each reason that the manager writes to the status of an object, in each of its conditions.
func TestArgoCDHealth(t *testing.T) {
	kinds := map[string]struct {
		subject reason.Subject
		object  func(suspended bool) status.Object
	}{
		"godwit.dev_CRDMigration": {reason.Migration, func(s bool) status.Object {
			return &v1alpha1.CRDMigration{Spec: v1alpha1.CRDMigrationSpec{Suspend: s}}
		}},
		"godwit.dev_ControllerRevisionUpgrade": {reason.Revision, func(s bool) status.Object {
			return &v1alpha1.ControllerRevisionUpgrade{Spec: v1alpha1.ControllerRevisionUpgradeSpec{Suspend: s}}
		}},
		"godwit.dev_ControllerRevisionUpgradeTrigger": {reason.Trigger, func(s bool) status.Object {
			return &v1alpha1.ControllerRevisionUpgradeTrigger{Spec: v1alpha1.ControllerRevisionUpgradeTriggerSpec{Suspend: s}}
		}},
		"global-hub.open-cluster-management.io_ManagedClusterMigration": {reason.ClusterMigration, func(bool) status.Object {
			return &hubapi.ManagedClusterMigration{}
		}},
	}
	checks := healthChecks(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(kinds)), slices.Sorted(maps.Keys(checks))); diff != "" {
		t.Fatalf("health checks of kinds (-want +got):\n%s", diff)
	}
	for kind, of := range kinds {
		t.Run(kind, func(t *testing.T) {
			shown := 0
			group := reason.Groups()[slices.IndexFunc(reason.Groups(), func(g reason.Group) bool { return g.Subject == of.subject })]
			for _, r := range group.Reasons() {
				for _, o := range group.Occurrences(r) {
					suspended := o.Condition == "" && r.Name == "Suspended"
					if _, known := statusesOf[o.Condition]; !known || o.Condition == "" && !suspended {
						continue // an event alone, or a condition of the kind alone
					}
					shown++
					object := of.object(suspended)
					object.SetGeneration(3)
					status.Summary{State: status.State(o.Condition), Reason: r.Name, Message: "what happened"}.Apply(object)
					want := health{statusesOf[o.Condition], r.Name + ": what happened"}
					if suspended {
						want.Message = "spec.suspend is true; set it to false to resume"
					}
					if got := healthOf(t, checks[kind], object); got != want {
						t.Errorf("%s, %s is True: %v, want %v", r.Name, o.Condition, got, want)
					}
				}
			}
			if shown < 3 {
				t.Errorf("only %d reasons were shown", shown)
			}
		})
		t.Run(kind+" in between", func(t *testing.T) { checkUnsettled(t, checks[kind], of.object) })
	}
}

// checkUnsettled checks objects about which the manager has said nothing, or nothing about their newest spec.
func checkUnsettled(t *testing.T, script string, object func(suspended bool) status.Object) {
	t.Helper()
	fresh := object(false)
	fresh.SetGeneration(1)
	if got, want := healthOf(t, script, fresh), (health{"Progressing", "The manager of Godwit has not written a status yet."}); got != want {
		t.Errorf("no status yet: %v, want %v", got, want)
	}
	behind := object(false)
	behind.SetGeneration(1)
	status.Summary{State: status.StateReady, Reason: "Succeeded"}.Apply(behind)
	behind.SetGeneration(2)
	if got, want := healthOf(t, script, behind), (health{"Progressing", "The status is of an older spec."}); got != want {
		t.Errorf("Ready at an older generation: %v, want %v", got, want)
	}
	none := object(false)
	none.SetGeneration(1)
	*none.ObservedGeneration() = 1
	*none.Conditions() = []metav1.Condition{{Type: status.Ready, Status: metav1.ConditionFalse}}
	if got := healthOf(t, script, none); got.Status != "Progressing" {
		t.Errorf("no condition is True: %v", got)
	}
}
