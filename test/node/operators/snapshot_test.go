package operators_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// snapshot is what a user has: the UID and the content of objects, by kind, namespace and name.
type snapshot map[string]string

// snapshotOf reads all objects of kinds at a version: what users have written, without the fields that controllers write.
func (s *stage) snapshotOf(ctx context.Context, version schema.GroupVersion, kinds ...string) snapshot {
	s.t.Helper()
	all := snapshot{}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(version.WithKind(kind + "List"))
		if err := s.List(ctx, list); err != nil {
			s.t.Fatal(err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			all.add(kind, o, map[string]any{"spec": withoutEmpty(o.Object["spec"]), "labels": o.GetLabels()})
		}
	}
	return all
}

// withoutEmpty leaves out empty objects, which a conversion webhook adds when it reads an object at an older version.
func withoutEmpty(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return value
	}
	kept := map[string]any{}
	for name, of := range fields {
		of = withoutEmpty(of)
		if empty, ok := of.(map[string]any); !ok || len(empty) > 0 {
			kept[name] = of
		}
	}
	return kept
}

// secrets reads the Secrets of a namespace, with each byte of their data.
func (s *stage) secrets(ctx context.Context, namespace string) snapshot {
	s.t.Helper()
	list := &corev1.SecretList{}
	if err := s.List(ctx, list, client.InNamespace(namespace)); err != nil {
		s.t.Fatal(err)
	}
	all := snapshot{}
	for i := range list.Items {
		all.add("Secret", &list.Items[i], map[string]any{"type": list.Items[i].Type, "data": list.Items[i].Data})
	}
	return all
}

func (all snapshot) add(kind string, o client.Object, content any) {
	text, err := json.Marshal(struct {
		UID     types.UID
		Content any
	}{o.GetUID(), content})
	if err != nil {
		panic(err) // maps of what was JSON
	}
	all[kind+" "+o.GetNamespace()+"/"+o.GetName()] = string(text)
}

// mustKeep fails unless another snapshot has each object of this one, as it was. It may have more.
func (s *stage) mustKeep(when string, before, now snapshot) {
	s.t.Helper()
	var lost []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now[name] != before[name] {
			lost = append(lost, fmt.Sprintf("%s: %s", name, cmp.Diff(before[name], now[name])))
		}
	}
	if len(before) == 0 || len(lost) > 0 {
		s.t.Errorf("%s, %d of %d objects are not what they were, for example %s", when, len(lost), len(before), strings.Join(lost[:min(3, len(lost))], "\n"))
	}
	s.t.Logf("%s, %d objects are what they were", when, len(before)-len(lost))
}
