package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/walk"
)

// Scope selects objects of a resource. Without a namespace and a selector, it selects all.
type Scope struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Selector  labels.Selector
}

// wholePage bounds the pages of whole objects, which are larger than their metadata.
const wholePage = 100

// WholeObjects lists whole objects in the order of their keys, in pages whose size follows that of the objects.
func (c *Client) WholeObjects(ctx context.Context, s Scope, o walk.ListOptions) walk.Source[*unstructured.Unstructured] {
	o.PageObjects, o.PageBytes = wholePage, walk.DefaultPageBytes
	return walk.List(ctx, func(ctx context.Context, limit int64, token string) (walk.Page[*unstructured.Unstructured], string, error) {
		return c.WholePage(ctx, s, limit, token)
	}, o)
}

// WholePage lists one page of whole objects. It has the signature of a [walk.Fetch].
func (c *Client) WholePage(ctx context.Context, s Scope, limit int64, token string) (walk.Page[*unstructured.Unstructured], string, error) {
	req := Quiet(c.Get().AbsPath(CollectionPath(s.Resource, s.Namespace)...).Param("limit", strconv.FormatInt(limit, 10)).SetHeader("Accept", runtime.ContentTypeJSON))
	if token != "" {
		req.Param("continue", token)
	}
	if s.Selector != nil {
		req.Param("labelSelector", s.Selector.String())
	}
	var page walk.Page[*unstructured.Unstructured]
	text, err := Body(Do(ctx, req))
	if err != nil {
		return page, "", fmt.Errorf("list %s: %w", s.Resource.GroupResource(), err)
	}
	var list struct {
		metav1.ListMeta `json:"metadata"`

		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return page, "", fmt.Errorf("list %s: %w", s.Resource.GroupResource(), err)
	}
	page.ResourceVersion, page.Remaining, page.Bytes = list.ResourceVersion, UnknownCount, int64(len(text))
	for _, item := range list.Items {
		o, err := Decode(item)
		if err != nil {
			return page, "", err
		}
		page.Items = append(page.Items, o)
	}
	return page, list.Continue, nil
}
