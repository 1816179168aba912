package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

// Catalog reads which resources the API server serves. It reads the discovery of each version: the
// aggregated document does not say what is stored.
func (r *Rewriter) Catalog(ctx context.Context) (Catalog, error) {
	services, err := r.apiServices(ctx)
	if err != nil {
		return Catalog{}, err
	}
	versions, err := r.versions(ctx)
	if err != nil {
		return Catalog{}, err
	}
	lists, errs := make([]metav1.APIResourceList, len(versions)), make([]error, len(versions))
	slots := make(chan struct{}, walk.DefaultMaxInFlight)
	var readers sync.WaitGroup
	for i, v := range versions {
		readers.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = r.read(ctx, &lists[i], kube.GroupVersionPath(v.GroupVersion)...)
		})
	}
	readers.Wait()
	if ctx.Err() != nil {
		return Catalog{}, context.Cause(ctx)
	}
	c := Catalog{failed: map[schema.GroupVersion]error{}, services: services}
	for i, v := range versions {
		if errs[i] != nil {
			c.failed[v.GroupVersion] = errs[i]
			continue
		}
		for _, one := range lists[i].APIResources {
			if !strings.Contains(one.Name, "/") {
				c.resources = append(c.resources, namedOf(v, one, services[v.GroupVersion]))
			}
		}
	}
	return c, nil
}

// versions lists the versions of all groups, the core group first and then in the API server's order.
func (r *Rewriter) versions(ctx context.Context) ([]version, error) {
	var core metav1.APIVersions
	if err := r.read(ctx, &core, "api"); err != nil {
		return nil, fmt.Errorf("read discovery: %w", err)
	}
	var groups metav1.APIGroupList
	if err := r.read(ctx, &groups, "apis"); err != nil {
		return nil, fmt.Errorf("read discovery: %w", err)
	}
	var all []version
	for i, v := range core.Versions {
		all = append(all, version{schema.GroupVersion{Version: v}, i == 0})
	}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			all = append(all, version{schema.GroupVersion{Group: g.Name, Version: v.Version}, v.Version == g.PreferredVersion.Version})
		}
	}
	return all, nil
}

func (r *Rewriter) apiServices(ctx context.Context) (map[schema.GroupVersion]apiService, error) {
	var list struct {
		Items []struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Spec     struct {
				Group   string `json:"group"`
				Version string `json:"version"`
				Service *struct {
					Namespace string `json:"namespace"`
					Name      string `json:"name"`
				} `json:"service"`
			} `json:"spec"`
		} `json:"items"`
	}
	if err := r.read(ctx, &list, kube.CollectionPath(apiServiceList, "")...); err != nil {
		return nil, fmt.Errorf("list apiservices: %w", err)
	}
	all := map[schema.GroupVersion]apiService{}
	for _, item := range list.Items {
		s := apiService{custom: item.Metadata.Labels[managedLabel] == ofCRDs}
		if item.Spec.Service != nil {
			s.service = item.Spec.Service.Namespace + "/" + item.Spec.Service.Name
		}
		all[schema.GroupVersion{Group: item.Spec.Group, Version: item.Spec.Version}] = s
	}
	return all, nil
}

// read decodes a JSON document of the API server.
func (r *Rewriter) read(ctx context.Context, into any, path ...string) error {
	body, err := kube.Body(kube.Do(ctx, r.client.Get().AbsPath(path...).SetHeader("Accept", runtime.ContentTypeJSON)))
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}
