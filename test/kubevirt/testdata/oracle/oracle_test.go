package oracle_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"kubevirt.io/api/instancetype/v1alpha1"
	"kubevirt.io/api/instancetype/v1alpha2"
	"kubevirt.io/api/instancetype/v1beta1"
	kjson "sigs.k8s.io/json"

	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/revision/reference"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// A theirs is what KubeVirt has for one kind at one version.
type theirs struct {
	version, kind string
	// old and converted are new objects of its Go types.
	old, converted func() any
	convert        func(old, converted any) error
}

func pair[A, B any](version, kind string, convert func(*A, *B, conversion.Scope) error) theirs {
	return theirs{
		version: version, kind: kind,
		old: func() any { return new(A) }, converted: func() any { return new(B) },
		convert: func(old, converted any) error { return convert(old.(*A), converted.(*B), nil) },
	}
}

var oracle = []theirs{
	pair("v1alpha1", "VirtualMachineInstancetype", v1alpha1.Convert_v1alpha1_VirtualMachineInstancetype_To_v1beta1_VirtualMachineInstancetype),
	pair("v1alpha1", "VirtualMachineClusterInstancetype", v1alpha1.Convert_v1alpha1_VirtualMachineClusterInstancetype_To_v1beta1_VirtualMachineClusterInstancetype),
	pair("v1alpha1", "VirtualMachinePreference", v1alpha1.Convert_v1alpha1_VirtualMachinePreference_To_v1beta1_VirtualMachinePreference),
	pair("v1alpha1", "VirtualMachineClusterPreference", v1alpha1.Convert_v1alpha1_VirtualMachineClusterPreference_To_v1beta1_VirtualMachineClusterPreference),
	pair("v1alpha2", "VirtualMachineInstancetype", v1alpha2.Convert_v1alpha2_VirtualMachineInstancetype_To_v1beta1_VirtualMachineInstancetype),
	pair("v1alpha2", "VirtualMachineClusterInstancetype", v1alpha2.Convert_v1alpha2_VirtualMachineClusterInstancetype_To_v1beta1_VirtualMachineClusterInstancetype),
	pair("v1alpha2", "VirtualMachinePreference", v1alpha2.Convert_v1alpha2_VirtualMachinePreference_To_v1beta1_VirtualMachinePreference),
	pair("v1alpha2", "VirtualMachineClusterPreference", v1alpha2.Convert_v1alpha2_VirtualMachineClusterPreference_To_v1beta1_VirtualMachineClusterPreference),
}

func find(version, kind string) theirs {
	i := slices.IndexFunc(oracle, func(o theirs) bool { return o.version == version && o.kind == kind })
	return oracle[i]
}

// A result is what either side makes of data.
type result struct {
	// refused says why it was.
	refused error
	// unknown are paths of fields.
	unknown []string
	// object of the Go types of v1beta1, and its JSON.
	object any
	text   string
}

// theirResult reads data of one kind and version by KubeVirt's types, and converts it.
func (o theirs) theirResult(data []byte) result {
	old := o.old()
	strict, err := kjson.UnmarshalStrict(data, old)
	if err != nil {
		return result{refused: err}
	}
	var v result
	for _, finding := range strict {
		path, isUnknown := unknownField(finding)
		if !isUnknown {
			return result{refused: finding} // KubeVirt takes the last of two, we take none
		}
		v.unknown = append(v.unknown, shorten(path))
	}
	v.object = o.converted()
	if err := o.convert(old, v.object); err != nil {
		return result{refused: err}
	}
	slices.Sort(v.unknown)
	v.text = specOf(v.object)
	return v
}

// unknownField is the path that a strict reader found nothing for.
func unknownField(finding error) (string, bool) {
	quoted, isUnknown := strings.CutPrefix(finding.Error(), "unknown field ")
	path, err := strconv.Unquote(quoted)
	return path, isUnknown && err == nil
}

// shorten makes one of all long paths: we cut keys of any length, KubeVirt's reader
// does not.
func shorten(path string) string {
	if len(path) > 100 {
		return "…"
	}
	return path
}

// ourResult reads and converts data by our own code, and only then takes KubeVirt's
// types to see what came of it.
func (o theirs) ourResult(data []byte, form string) result {
	var family kubevirt.Family
	r := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: data}}
	s, err := family.Decode(r, reference.ExpectedType{Kind: o.kind})
	if err != nil {
		return result{refused: err}
	}
	if s.Form != form || s.Version != o.version {
		return result{refused: fmt.Errorf("it was taken for %s at %s", s.Form, s.Version)}
	}
	s, err = family.Convert(s, "v1beta1")
	if err != nil {
		return result{refused: err}
	}
	text, err := json.Marshal(s.Object)
	if err != nil {
		return result{refused: err}
	}
	v := result{object: o.converted()}
	for _, path := range s.Losses {
		v.unknown = append(v.unknown, shorten(path))
	}
	slices.Sort(v.unknown)
	strict, err := kjson.UnmarshalStrict(text, v.object)
	if err != nil {
		return result{refused: fmt.Errorf("KubeVirt can't read what came of it, %s: %w", text, err)}
	}
	for _, finding := range strict {
		if path, _ := unknownField(finding); !slices.Contains(v.unknown, shorten(path)) {
			return result{refused: fmt.Errorf("a loss was not told: %w", finding)}
		}
	}
	spec, err := json.Marshal(s.Object["spec"])
	if err != nil {
		return result{refused: err}
	}
	v.text = string(spec)
	return v
}

// specOf is the spec of a typed object as KubeVirt writes it, with its keys sorted.
func specOf(object any) string {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	var decoded struct {
		Spec map[string]any `json:"spec"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // there are 64 bits without a sign
	if err := decoder.Decode(&decoded); err != nil {
		panic(err)
	}
	text, err = json.Marshal(decoded.Spec)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// differ says in what two results on the same data differ.
func differ(want, got result) error {
	if (want.refused != nil) != (got.refused != nil) {
		return fmt.Errorf("KubeVirt: %v, Godwit: %v", want.refused, got.refused)
	}
	if want.refused != nil {
		return nil
	}
	if diff := cmp.Diff(want.unknown, got.unknown); diff != "" {
		return fmt.Errorf("unknown fields (-KubeVirt +Godwit):\n%s", diff)
	}
	theirObject, ourObject := withoutType(want.object), withoutType(got.object)
	if !equality.Semantic.DeepEqual(theirObject, ourObject) {
		return errors.New("objects (-KubeVirt +Godwit):\n" + cmp.Diff(theirObject, ourObject))
	}
	return nil
}

// withoutType leaves out apiVersion and kind, which their conversion drops.
func withoutType(object any) any {
	switch o := object.(type) {
	case *v1beta1.VirtualMachineInstancetype:
		o.APIVersion, o.Kind = "", ""
	case *v1beta1.VirtualMachineClusterInstancetype:
		o.APIVersion, o.Kind = "", ""
	case *v1beta1.VirtualMachinePreference:
		o.APIVersion, o.Kind = "", ""
	case *v1beta1.VirtualMachineClusterPreference:
		o.APIVersion, o.Kind = "", ""
	}
	return object
}

// wrap makes a spec by itself, as v0.56 stored it.
func wrap(apiVersion string, spec []byte) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"spec":%q}`, apiVersion, base64.StdEncoding.EncodeToString(spec))
}

// beneath makes a whole object of a spec.
func (o theirs) beneath(spec []byte) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"instancetype.kubevirt.io/%s","kind":%q,"spec":%s}`, o.version, o.kind, spec)
}

// payload is the spec within a spec by itself.
func payload(data string) []byte {
	var bare struct {
		Spec []byte `json:"spec"`
	}
	if err := json.Unmarshal([]byte(data), &bare); err != nil {
		panic(err)
	}
	return bare.Spec
}

func TestConvertAsKubeVirt(t *testing.T) {
	t.Parallel()
	converted := 0
	for _, f := range fixture.All() {
		if f.Version == "v1beta1" {
			continue // nothing to convert
		}
		converted++
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			o := find(f.Version, f.Kind)
			data, form := []byte(f.Data), kubevirt.FormObject
			if f.Form == "F0" {
				data, form = o.beneath(payload(f.Data)), kubevirt.FormSpecRevision
			}
			want, got := o.theirResult(data), o.ourResult([]byte(f.Data), form)
			if want.refused != nil {
				t.Fatalf("KubeVirt refuses the fixture: %v", want.refused)
			}
			if err := differ(want, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.text, got.text); diff != "" {
				t.Errorf("JSON (-KubeVirt +Godwit):\n%s", diff)
			}
		})
	}
	if converted != 20 {
		t.Errorf("compared %d fixtures, want 20", converted)
	}
}
