package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/godwit-dev/godwit/test/controlplane"
)

const (
	nameAnnotation   = "crossplane.io/external-name"
	pausedAnnotation = "crossplane.io/paused"
)

// membersOf returns the managed resources of a script.
func membersOf(ts *testscript.TestScript) (dynamic.NamespaceableResourceInterface, error) {
	client, err := dynamic.NewForConfig(clusterOf(ts).Config())
	if err != nil {
		return nil, err
	}
	return client.Resource(schema.GroupVersionResource{Group: ts.Getenv("GROUP"), Version: "v1", Resource: "members"}), nil
}

// members: creates the CRD of managed resources, members.$GROUP.
func installMembers(ts *testscript.TestScript, _ []string) error {
	crd := newCRD(ts, "members", []string{"v1*+"})
	crd.Spec.Names.Categories = []string{"crossplane", "managed"}
	return controlplane.InstallCRDs(context.Background(), clusterOf(ts).Config(), crd)
}

// member NAME EXTERNAL-NAME [MANAGER]: creates a managed resource, by server-side apply of a field manager if one is given.
func createMember(ts *testscript.TestScript, args []string) error {
	members, err := membersOf(ts)
	if err != nil {
		return err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"forProvider": map[string]any{"org": "acme"}}}}
	o.SetAPIVersion(ts.Getenv("GROUP") + "/v1")
	o.SetKind("Member")
	o.SetName(args[0])
	o.SetAnnotations(map[string]string{nameAnnotation: args[1]})
	if len(args) > 2 {
		_, err = members.Namespace("default").Apply(context.Background(), args[0], o, metav1.ApplyOptions{FieldManager: args[2]})
		return err
	}
	_, err = members.Namespace("default").Create(context.Background(), o, metav1.CreateOptions{})
	return err
}

// provider NAME...: a provider of members runs until the end of the script. Its external system has resources with
// these names, and ignores letter case. It returns when all members are observed.
func runProvider(ts *testscript.TestScript, args []string) error {
	members, err := membersOf(ts)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			observeMembers(ctx, members, args)
			time.Sleep(50 * time.Millisecond)
		}
	}()
	ts.Defer(func() { stop(); <-done })
	return eventually(func() error {
		list, err := members.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, one := range list.Items {
			if _, found, _ := unstructured.NestedSlice(one.Object, "status", "conditions"); !found {
				return fmt.Errorf("%s is not observed", one.GetName())
			}
		}
		return nil
	})
}

// observeMembers is one pass. It writes each status at the resourceVersion that it has read, as crossplane-runtime does.
func observeMembers(ctx context.Context, members dynamic.NamespaceableResourceInterface, existing []string) {
	list, err := members.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, one := range list.Items {
		status, reason := "False", "ReconcileError"
		id := strings.ToLower(one.GetAnnotations()[nameAnnotation])
		switch {
		case one.GetAnnotations()[pausedAnnotation] == "true":
			reason = "ReconcilePaused"
		case slices.Contains(existing, id):
			status, reason = "True", "ReconcileSuccess"
			_ = unstructured.SetNestedField(one.Object, id, "status", "atProvider", "id")
		}
		if now, _, _ := unstructured.NestedSlice(one.Object, "status", "conditions"); len(now) == 1 && now[0].(map[string]any)["reason"] == reason {
			continue
		}
		_ = unstructured.SetNestedSlice(one.Object, []any{map[string]any{
			"type": "Synced", "status": status, "reason": reason, "message": "as the external system says", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}}, "status", "conditions")
		_, _ = members.Namespace(one.GetNamespace()).UpdateStatus(ctx, &one, metav1.UpdateOptions{})
	}
}

// annotated NAME KEY [VALUE]: an annotation of a member has a value, or does not exist.
func checkAnnotation(ts *testscript.TestScript, args []string) error {
	members, err := membersOf(ts)
	if err != nil {
		return err
	}
	o, err := members.Namespace("default").Get(context.Background(), args[0], metav1.GetOptions{})
	if err != nil {
		return err
	}
	value, exists := o.GetAnnotations()[args[1]]
	if len(args) > 2 && value != args[2] || exists != (len(args) > 2) {
		return fmt.Errorf("annotation %s of %s is %q", args[1], args[0], value)
	}
	return nil
}

// annotate NAME KEY VALUE: as kubectl annotate.
func annotateMember(ts *testscript.TestScript, args []string) error {
	members, err := membersOf(ts)
	if err != nil {
		return err
	}
	o, err := members.Namespace("default").Get(context.Background(), args[0], metav1.GetOptions{})
	if err != nil {
		return err
	}
	annotations := o.GetAnnotations()
	annotations[args[1]] = args[2]
	o.SetAnnotations(annotations)
	_, err = members.Namespace("default").Update(context.Background(), o, metav1.UpdateOptions{})
	return err
}
