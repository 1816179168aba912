package decision

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/fixtest"
	"github.com/godwit-dev/godwit/internal/kube/kubetest"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// fields gives a version of the CRD a schema whose spec has these fields.
func fields(version string, names ...string) kubetest.Edit {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
		for _, name := range names {
			spec.Properties[name] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
		for i := range crd.Spec.Versions {
			if v := &crd.Spec.Versions[i]; v.Name == version {
				v.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec},
				}}
			}
		}
	}
}

func oldUnserved(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Served = false }

func converted(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
}

func TestCheckValues(t *testing.T) {
	lossy := []kubetest.Edit{fields("v1", "a", "b"), fields("v2", "b")}
	lost := &RoundTrips{Objects: 3, All: true, Losses: []values.Loss{{Path: "spec.a", Objects: 2, Examples: []string{"ns/x", "ns/y"}}}}
	cases := map[string]struct {
		reason string
		crd    []kubetest.Edit
		trips  *RoundTrips
		none   bool // no objects
		accept []string
		want   []string
	}{
		"kept":                     {reason: "the schemas prove it", crd: []kubetest.Edit{fields("v1", "a"), fields("v2", "a", "b")}},
		"not tried":                {reason: "the run tries each object", crd: lossy},
		"lost":                     {reason: "a path, objects, examples", crd: lossy, trips: lost, want: []string{"FieldsWouldBeLost: a rewrite of widgets.example.com at v2 drops values of objects: spec.a (2 objects, such as ns/x, ns/y)"}},
		"lost and accepted":        {reason: "by path", crd: lossy, trips: lost, accept: []string{"spec.a"}},
		"lost and accepted above":  {reason: "a path has all below it", crd: lossy, trips: lost, accept: []string{"spec"}},
		"lost and all accepted":    {reason: "each path", crd: lossy, trips: lost, accept: []string{"."}},
		"another accepted":         {reason: "the storage version keeps it: a mistake", crd: lossy, trips: lost, accept: []string{"spec.b"}, want: []string{"AcceptedPathUnknown", "FieldsWouldBeLost"}},
		"misspelled":               {reason: "no version has it", crd: lossy, accept: []string{"spec.aa"}, want: []string{"AcceptedPathUnknown: a rewrite of widgets.example.com at v2 can't lose values at spec.aa"}},
		"a webhook":                {reason: "only a round trip shows it", crd: []kubetest.Edit{fields("v1", "a"), fields("v2", "b"), converted}, accept: []string{"spec.a"}},
		"a webhook, misspelled":    {reason: "no old version has it", crd: []kubetest.Edit{fields("v1", "a"), fields("v2", "b"), converted}, accept: []string{"spec.b"}, want: []string{"AcceptedPathUnknown"}},
		"not served":               {reason: "no client sees the values", crd: append(slices.Clone(lossy), oldUnserved), want: []string{"FieldsMayBeLost: a rewrite of widgets.example.com at v2 may drop values of objects that are stored at a version which is not served, so that no client sees them: v1: spec.a"}},
		"not served, no objects":   {reason: "nothing can be lost", crd: append(slices.Clone(lossy), oldUnserved), none: true},
		"not served, accepted":     {reason: "by path", crd: append(slices.Clone(lossy), oldUnserved), accept: []string{"spec.a"}},
		"not served, and converts": {reason: "schemas say nothing about it", crd: []kubetest.Edit{fields("v1", "a"), fields("v2", "a"), converted, oldUnserved}, want: []string{"FieldsMayBeLost: a rewrite of widgets.example.com at v2 may drop values of objects that are stored at a version which is not served, so that no client sees them: v1, from which a webhook converts"}},
		"some were tried": {
			reason: "the others may lose more", crd: lossy, trips: &RoundTrips{Objects: 1, Losses: lost.Losses},
			want: []string{"FieldsWouldBeLost: a rewrite of widgets.example.com at v2 drops values of objects: spec.a (2 objects, such as ns/x, ns/y); other objects may lose more, since only 1 were tried"},
		},
		"some could not be tried": {
			reason: "what is unknown is not good", crd: lossy,
			trips: &RoundTrips{Objects: 3, All: true, Failed: 1, Failures: []godwit.Failure{{Namespace: "ns", Name: "z", Finding: godwit.Finding{Message: "timed out"}}}},
			want:  []string{"FieldsMayBeLost: it is not known whether a rewrite of widgets.example.com keeps each value, because objects could not be tried (1), the first: ns/z: timed out"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := Facts{CRD: kubetest.Widgets(tc.crd...), Objects: new(int64(3)), RoundTrips: tc.trips}
			if tc.none {
				f.Objects = new(int64(0))
			}
			got := CheckValues(f, Policy{AcceptLosses: tc.accept})
			if err := fixtest.All(got); err != nil {
				t.Error(err)
			}
			var lines []string
			for _, finding := range got {
				lines = append(lines, finding.Line())
			}
			if !slices.EqualFunc(lines, tc.want, strings.HasPrefix) {
				t.Errorf("%s: %q, want %q", tc.reason, lines, tc.want)
			}
		})
	}
}

// TestCheckValuesOfAResumedRun: a proof of this generation needs no other, while the user gives up what it gave up.
func TestCheckValuesOfAResumedRun(t *testing.T) {
	crd := kubetest.Widgets(fields("v1", "a"), fields("v2", "b"), oldUnserved)
	proof := &evidence.Proof{By: evidence.ByConsent, Generation: crd.Generation, Accepted: []values.Loss{{Path: "spec.a", Objects: 1}}}
	f := Facts{CRD: crd, Objects: new(int64(3)), Checkpoint: evidence.Checkpoint{CRDUID: crd.UID, Generation: crd.Generation, StorageVersion: "v2", ResourceVersion: "5", Proof: proof}}
	f.Checkpoint.Settled.Duration = DefaultSettle
	if got := CheckValues(f, Policy{AcceptLosses: []string{"spec.a"}}); len(got) != 0 {
		t.Errorf("%+v, want none", got)
	}
	if got := CheckValues(f, Policy{}); len(got) != 1 {
		t.Errorf("without the consent: %+v, want one blocker", got)
	}
	proof.Generation--
	if got := CheckValues(f, Policy{}); len(got) != 1 {
		t.Errorf("after a change of the CRD: %+v, want one blocker", got)
	}
}

func TestAnswering(t *testing.T) {
	crd := kubetest.Widgets()
	for name, c := range map[string]struct {
		d    Discovery
		want Answering
	}{
		"adopted":                {Discovery{Found: true, Hash: storageVersionHash(crd)}, AnsweredByAdopted},
		"another hash":           {Discovery{Found: true, Hash: "abc"}, AnsweredByLate},
		"no such version yet":    {Discovery{}, AnsweredByLate},
		"another server":         {Discovery{Found: true, Service: "a/b"}, AnsweredByOther},
		"another server's hash":  {Discovery{Found: true, Hash: "abc", Service: "a/b"}, AnsweredByOther},
		"no hash, no APIService": {Discovery{Found: true}, AnsweredByUnknown},
	} {
		if got := c.d.Answering(crd); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestProofOf(t *testing.T) {
	lossy := kubetest.Widgets(fields("v1", "a"), fields("v2", "b"))
	hidden := kubetest.Widgets(fields("v1", "a"), fields("v2", "b"), oldUnserved)
	tried := &RoundTrips{Objects: 3, All: true}
	for name, c := range map[string]struct {
		f        Facts
		by       evidence.ProvenBy
		unproven int
	}{
		"schemas":                {Facts{CRD: kubetest.Widgets(fields("v1", "a"), fields("v2", "a"))}, evidence.BySchemas, 0},
		"round trips":            {Facts{CRD: lossy, RoundTrips: tried, Objects: new(int64(3))}, evidence.ByRoundTrips, 0},
		"consent":                {Facts{CRD: hidden, Objects: new(int64(3))}, evidence.ByConsent, 1},
		"no objects":             {Facts{CRD: hidden, Objects: new(int64(0))}, evidence.ByRoundTrips, 0},
		"no trips, all given up": {Facts{CRD: lossy, Objects: new(int64(3))}, evidence.ByConsent, 1},
	} {
		if got := ProofOf(c.f); got.By != c.by || len(got.Unproven) != c.unproven || got.Generation != c.f.CRD.Generation {
			t.Errorf("%s: %+v, want %s with %d unproven", name, got, c.by, c.unproven)
		}
	}
}
