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

// WholePage lists one page of whole objects. It has the signature of a [walk.Fetch].
func (c *Client) WholePage(ctx context.Context, s Scope, limit int64, token string) (walk.Page[*unstructured.Unstructured], string, error) {
	req := c.Get().AbsPath(CollectionPath(s.Resource, s.Namespace)...).Param("limit", strconv.FormatInt(limit, 10)).SetHeader("Accept", runtime.ContentTypeJSON)
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
	page.ResourceVersion, page.Remaining = list.ResourceVersion, UnknownCount
	for _, item := range list.Items {
		o, err := Decode(item)
		if err != nil {
			return page, "", err
		}
		page.Items = append(page.Items, o)
	}
	return page, list.Continue, nil
}
