package objects

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// All 19 teams together have 2,000 objects: 5 + 19 × (5 + 100).
const (
	classCount      = 5
	gatewaysPerTeam = 5
	routesPerTeam   = 100
)

var teams = []string{
	"accounts", "billing", "blog", "cart", "catalog", "chat", "checkout", "delivery", "docs", "events",
	"feed", "login", "mail", "maps", "media", "orders", "prices", "search", "stock",
}

// creators is the number of requests that create objects at the same time. More
// requests are not faster on two cores.
const creators = 16

// populate creates every object through the old version.
func populate(ctx context.Context, clients kubernetes.Interface, objects dynamic.Interface) (map[string]int, error) {
	for _, team := range teams {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}
		if _, err := clients.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("create namespace %s: %w", team, err)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan manifest)
	var workers sync.WaitGroup
	for range creators {
		workers.Go(func() {
			for m := range next {
				client := objects.Resource(resource(m.plural, oldVersion)).Namespace(m.GetNamespace())
				if _, err := client.Create(ctx, m.Unstructured, metav1.CreateOptions{}); err != nil {
					cancel(fmt.Errorf("create %s %s/%s: %w", m.GetKind(), m.GetNamespace(), m.GetName(), err))
				}
			}
		})
	}
	created := map[string]int{}
	for _, m := range population() {
		if ctx.Err() != nil {
			break
		}
		next <- m
		created[m.plural]++
	}
	close(next)
	workers.Wait()
	return created, context.Cause(ctx)
}

// manifest is an object and its resource.
type manifest struct {
	plural string
	*unstructured.Unstructured
}

func population() []manifest {
	var all []manifest
	for i := range classCount {
		all = append(all, gatewayClass(i))
	}
	for _, team := range teams {
		for i := range gatewaysPerTeam {
			all = append(all, gateway(team, i))
		}
		for i := range routesPerTeam {
			all = append(all, httpRoute(team, i))
		}
	}
	return all
}

func gatewayClass(i int) manifest {
	return newManifest("gatewayclasses", "", fmt.Sprintf("class-%d", i), map[string]any{
		"controllerName": fmt.Sprintf("example.com/controller-%d", i),
	})
}

func gateway(team string, i int) manifest {
	return newManifest("gateways", team, fmt.Sprintf("gateway-%d", i), map[string]any{
		"gatewayClassName": fmt.Sprintf("class-%d", i%classCount),
		"listeners": []any{map[string]any{
			"name": "http", "port": int64(80), "protocol": "HTTP", "hostname": fmt.Sprintf("*.%s.example.com", team),
		}},
	})
}

func httpRoute(team string, i int) manifest {
	name := fmt.Sprintf("route-%02d", i)
	return newManifest("httproutes", team, name, map[string]any{
		"parentRefs": []any{map[string]any{"name": fmt.Sprintf("gateway-%d", i%gatewaysPerTeam)}},
		"hostnames":  []any{fmt.Sprintf("%s.%s.example.com", name, team)},
		"rules": []any{map[string]any{
			"matches":     []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/"}}},
			"backendRefs": []any{map[string]any{"name": team, "port": int64(8080)}},
		}},
	})
}

func newManifest(plural, namespace, name string, spec map[string]any) manifest {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetAPIVersion(group + "/" + oldVersion)
	u.SetKind(kinds[plural])
	u.SetNamespace(namespace)
	u.SetName(name)
	return manifest{plural, u}
}
