package evidence

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	uuid     = "0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11"
	otherID  = "1b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11"
	arn      = "arn:aws:s3:::bucket"
	armLower = "/subscriptions/s/resourcegroups/g/providers/p/t/n"
	armUpper = "/subscriptions/S/resourceGroups/G/providers/P/T/n/"
)

// mr is a managed resource in a few words.
type mr struct {
	group, namespace, name, external string
	bound                            string
	config, configKind               string
	spec, status                     map[string]any
}

func (m mr) subject() Subject {
	if m.group == "" {
		m.group = "example.org"
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": m.group + "/v1", "kind": "Bucket", "spec": map[string]any{}}}
	o.SetNamespace(m.namespace)
	o.SetName(m.name)
	annotations := map[string]string{}
	if m.external != "" {
		annotations[AnnotationName] = m.external
	}
	if m.bound != "" {
		annotations[AnnotationBound] = m.bound
	}
	o.SetAnnotations(annotations)
	ref := map[string]any{"name": m.config}
	if m.configKind != "" {
		ref["kind"] = m.configKind
	}
	_ = unstructured.SetNestedMap(o.Object, ref, "spec", "providerConfigRef")
	if m.spec != nil {
		_ = unstructured.SetNestedMap(o.Object, m.spec, "spec", "forProvider")
	}
	if m.status != nil {
		_ = unstructured.SetNestedMap(o.Object, m.status, "status", "atProvider")
	}
	return SubjectOf(o)
}

type fields = map[string]any

func TestCompare(t *testing.T) {
	for reason, test := range map[string]struct {
		a, b mr
		want Sameness
	}{
		"different names":                   {mr{external: "a"}, mr{external: "b"}, Distinct},
		"no names":                          {mr{}, mr{}, Distinct},
		"one name":                          {mr{external: "a"}, mr{external: "a"}, Certain},
		"outer spaces":                      {mr{external: "a"}, mr{external: " a "}, Certain},
		"another case may be another name":  {mr{external: "a"}, mr{external: "A"}, Distinct},
		"one name in two accounts":          {mr{external: "a", config: "dev"}, mr{external: "a", config: "prod"}, Distinct},
		"a UUID in two accounts":            {mr{external: uuid, config: "dev"}, mr{external: uuid, config: "prod"}, Certain},
		"a UUID of zeros":                   {mr{status: fields{"id": "00000000-0000-0000-0000-000000000000"}}, mr{status: fields{"id": "00000000-0000-0000-0000-000000000000"}, config: "x"}, Distinct},
		"ARM ids in two cases":              {mr{external: armLower}, mr{external: armUpper, config: "other"}, Certain},
		"ARM ids in two cases, in a status": {mr{external: "n1", status: fields{"id": armLower}}, mr{external: "n2", status: fields{"id": armUpper}}, Certain},
		"an ARN in both":                    {mr{external: "a", status: fields{"arn": arn}}, mr{external: "b", status: fields{"arn": arn}}, Certain},
		"an ARN of other groups":            {mr{group: "s3.aws.crossplane.io", status: fields{"arn": arn}}, mr{group: "s3.aws.upbound.io", status: fields{"arn": arn}}, Certain},
		"names of other groups":             {mr{group: "s3.aws.crossplane.io", external: "a"}, mr{group: "s3.aws.upbound.io", external: "a"}, Distinct},
		"one parent, two ids":               {mr{external: "a", status: fields{"arn": arn, "id": "x"}}, mr{external: "a", status: fields{"arn": arn, "id": "y"}}, Distinct},
		"one name, two ids":                 {mr{external: "a", status: fields{"id": uuid}}, mr{external: "a", status: fields{"id": otherID}}, Distinct},
		"one name in two regions":           {mr{external: "a", spec: fields{"region": "eu"}}, mr{external: "a", spec: fields{"region": "us"}}, Distinct},
		"one key in two projects":           {mr{external: "KEY", spec: fields{"projectId": int64(1)}}, mr{external: "KEY", spec: fields{"projectId": int64(2)}}, Distinct},
		"one name, and another size":        {mr{external: "a", spec: fields{"size": "s"}}, mr{external: "a", spec: fields{"size": "l"}}, Likely},
		"one name and id, and another size": {mr{external: "a", spec: fields{"size": "s"}, status: fields{"id": "x", "size": "s"}}, mr{external: "a", spec: fields{"size": "l"}, status: fields{"id": "x", "size": "l"}}, Certain},
		"observed as the same":              {mr{external: "a", status: fields{"host": "h", "etag": "1"}}, mr{external: "a", status: fields{"host": "h", "etag": "2"}}, Certain},
		"observed as different":             {mr{external: "a", status: fields{"host": "h"}}, mr{external: "a", status: fields{"host": "i"}}, Likely},
		"two names, one id, all else equal": {mr{external: "ACME/a", status: fields{"id": "acme/a"}}, mr{external: "acme/a", status: fields{"id": "acme/a"}}, Certain},
		"two names, one id, not all equal":  {mr{external: "a", status: fields{"id": "parent", "key": "a"}}, mr{external: "b", status: fields{"id": "parent", "key": "b"}}, Likely},
		"two children of one ARN":           {mr{external: "a", spec: fields{"key": "a"}, status: fields{"arn": arn}}, mr{external: "b", spec: fields{"key": "b"}, status: fields{"arn": arn}}, Likely},
		"two children of one id":            {mr{external: "a", spec: fields{"key": "a"}, status: fields{"id": "parent"}}, mr{external: "b", spec: fields{"key": "b"}, status: fields{"id": "parent"}}, Likely},
		"the default name of both":          {mr{namespace: "n1", name: "a", external: "a"}, mr{namespace: "n2", name: "a", external: "a"}, Likely},
		"the name it was last seen under":   {mr{external: "b", bound: "a"}, mr{external: "a"}, Certain},
		"v1 beside v2": {
			mr{group: "s3.aws.upbound.io", name: "a", external: "a", config: "default"},
			mr{group: "s3.aws.m.upbound.io", namespace: "n", name: "a", external: "a", config: "default", configKind: "ClusterProviderConfig"}, Certain,
		},
		"v1 beside v2 of another account": {
			mr{group: "s3.aws.upbound.io", external: "a", config: "default"},
			mr{group: "s3.aws.m.upbound.io", external: "a", config: "other", configKind: "ClusterProviderConfig"}, Distinct,
		},
		"configs of two namespaces": {
			mr{namespace: "n1", external: "a", config: "c", configKind: "ProviderConfig"}, mr{namespace: "n2", external: "a", config: "c", configKind: "ProviderConfig"}, Distinct,
		},
	} {
		t.Run(reason, func(t *testing.T) {
			a, b := test.a.subject(), test.b.subject()
			if got := Compare(a, b); got != test.want {
				t.Errorf("it is %d, want %d", got, test.want)
			}
			if got := Compare(b, a); got != test.want {
				t.Errorf("turned it is %d, want %d", got, test.want)
			}
			groups := Share([]Subject{a, b})
			if test.want == Distinct && len(groups) > 0 || test.want != Distinct && (len(groups) != 1 || groups[0].Sameness != test.want) {
				t.Errorf("groups are %v", groups)
			}
		})
	}
}

// TestShare: a group that is certain is not hidden by one that may have the same name.
func TestShare(t *testing.T) {
	in := func(region, size string) Subject {
		return mr{external: "a", spec: fields{"region": region, "size": size}}.subject()
	}
	got := Share([]Subject{in("eu", "l"), in("us", "l"), in("eu", "l"), mr{external: "b"}.subject(), in("eu", "s")})
	if diff := cmp.Diff([]Group{{[]int{0, 2}, Certain}, {[]int{0, 2, 4}, Likely}}, got); diff != "" {
		t.Error(diff)
	}
}

// TestShareManyPlaces: one name in as many places as there are managed resources, and two in the last place.
func TestShareManyPlaces(t *testing.T) {
	var all []Subject
	for i := range 3000 {
		all = append(all, mr{external: "KEY", spec: fields{"projectId": fmt.Sprint(i)}}.subject())
	}
	all = append(all, all[2999])
	if diff := cmp.Diff([]Group{{[]int{2999, 3000}, Certain}}, Share(all)); diff != "" {
		t.Error(diff)
	}
}
