package managed

import (
	"encoding/json"
)

// Changes are annotations to write, nil removes one, and management policies.
type Changes struct {
	Annotations map[string]*string
	Policies    []string // nil changes nothing
}

// IsEmpty reports whether nothing is to be written.
func (c *Changes) IsEmpty() bool { return c == nil || len(c.Annotations) == 0 && c.Policies == nil }

func (c *Changes) annotate(key string, value *string) *Changes {
	if c.Annotations == nil {
		c.Annotations = map[string]*string{}
	}
	c.Annotations[key] = value
	return c
}

// Set writes an annotation.
func (c *Changes) Set(key, value string) *Changes { return c.annotate(key, &value) }

// Remove removes an annotation.
func (c *Changes) Remove(key string) *Changes { return c.annotate(key, nil) }

// Name sets the external name, or removes the annotation if the name is nil.
func (c *Changes) Name(name *string) *Changes { return c.annotate(AnnotationName, name) }

// patch is a merge patch at the resourceVersion that was read: the API server answers with a conflict
// if the object has changed since.
func (c *Changes) patch(m Resource) ([]byte, error) {
	patch := map[string]any{"metadata": map[string]any{
		"resourceVersion": m.GetResourceVersion(), "uid": m.GetUID(), "annotations": c.Annotations,
	}}
	if c.Policies != nil {
		patch["spec"] = map[string]any{"managementPolicies": c.Policies}
	}
	return json.Marshal(patch)
}
