package operators_test

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/node/operators/content"
)

// snapshotOf reads all objects of kinds at a version: labels and spec, which users write, without the status that controllers write.
func (s *stage) snapshotOf(ctx context.Context, version schema.GroupVersion, kinds ...string) content.Snapshot {
	s.t.Helper()
	all := content.Snapshot{}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(version.WithKind(kind + "List"))
		if err := s.List(ctx, list); err != nil {
			s.t.Fatal(err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			all.Add(kind, o, map[string]any{"spec": o.Object["spec"], "labels": asAny(o.GetLabels())})
		}
	}
	return all
}

// secrets reads the Secrets of a namespace, with each byte of their data.
func (s *stage) secrets(ctx context.Context, namespace string) content.Snapshot {
	s.t.Helper()
	list := &corev1.SecretList{}
	if err := s.List(ctx, list, client.InNamespace(namespace)); err != nil {
		s.t.Fatal(err)
	}
	all := content.Snapshot{}
	for i := range list.Items {
		secret := &list.Items[i]
		all.Add("Secret", secret, map[string]any{"type": secret.Type, "data": asAny(secret.Data)})
	}
	return all
}

func asAny[V any](values map[string]V) map[string]any {
	all := map[string]any{}
	for name, value := range values {
		all[name] = value
	}
	return all
}

// mustKeep fails unless another snapshot has each object of this one, as it was, but for values at paths that the user has given up. It
// may have more objects.
func (s *stage) mustKeep(when string, before, now content.Snapshot, givenUp ...string) content.Comparison {
	s.t.Helper()
	c := content.Compare(before, now, givenUp...)
	if c.Objects == 0 || c.Lost > 0 {
		s.t.Errorf("%s, %d of %d objects are not what they were, for example:\n%s", when, c.Lost, c.Objects, strings.Join(c.Differences[:min(3, len(c.Differences))], "\n"))
	}
	for _, path := range givenUp {
		if c.GivenUp[path] == 0 {
			s.t.Errorf("%s, each object has %s, which was given up", when, path)
		}
	}
	s.t.Logf("%s, %d of %d objects are what they were; given up: %v", when, c.Objects-c.Lost, c.Objects, c.GivenUp)
	return c
}
