package fieldmigration_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit/externalname/fieldmigration"
)

// database has the fields of three releases: Size became Disk.SizeGB, and Region is new.
type database struct {
	Size   int64  `json:"size,omitempty"`
	Region string `json:"region"`
	Disk   *disk  `json:"disk,omitempty"`
}

type disk struct {
	SizeGB int64 `json:"sizeGB,omitempty"`
}

func fill(d database) database {
	if d.Region == "" {
		d.Region = "eu1"
	}
	if d.Size != 0 {
		d.Disk = &disk{SizeGB: d.Size}
		d.Size = 0
	}
	return d
}

var databases = fieldmigration.Migration[database]{Fill: fill}

func TestApply(t *testing.T) {
	cases := map[string]struct {
		reason  string
		applier fieldmigration.Applier
		before  map[string]any
		want    map[string]any
	}{
		"an old object": {
			reason: "fields are filled and moved", applier: databases,
			before: map[string]any{"size": int64(7)},
			want:   map[string]any{"region": "eu1", "disk": map[string]any{"sizeGB": int64(7)}},
		},
		"a new object": {
			reason: "it stays as it is", applier: databases,
			before: map[string]any{"region": "us1", "disk": map[string]any{"sizeGB": int64(7)}},
			want:   map[string]any{"region": "us1", "disk": map[string]any{"sizeGB": int64(7)}},
		},
		"fields that the type does not have": {
			reason: "a newer client or a newer release has written them", applier: databases,
			before: map[string]any{"size": int64(7), "tags": map[string]any{"a": "b"}, "disk": map[string]any{"class": "ssd"}},
			want: map[string]any{"region": "eu1", "tags": map[string]any{"a": "b"},
				"disk": map[string]any{"class": "ssd", "sizeGB": int64(7)}},
		},
		"zero values of the type": {
			reason:  "region has no omitempty, but Fill has not changed it",
			applier: fieldmigration.Migration[database]{Fill: func(d database) database { return d }},
			before:  map[string]any{"size": int64(7)},
			want:    map[string]any{"size": int64(7)},
		},
		"large integers": {
			reason: "they are not rounded", applier: fieldmigration.Steps{Steps: []fieldmigration.Step{fieldmigration.Move("size", "bytes")}},
			before: map[string]any{"size": int64(9007199254740993)},
			want:   map[string]any{"bytes": int64(9007199254740993)},
		},
		"steps on an old object": {
			reason: "each makes its change", applier: steps,
			before: map[string]any{"name": "a", "size": int64(7)},
			want:   map[string]any{"name": "a", "title": "a", "region": "eu1", "disk": map[string]any{"sizeGB": int64(7), "classes": []any{"ssd", int64(2)}}},
		},
		"steps on a value that is there": {
			reason: "defaults and copies leave it, and a move is what the client has just written", applier: steps,
			before: map[string]any{"name": "a", "title": "b", "region": "us1", "size": int64(7), "disk": map[string]any{"sizeGB": int64(5), "classes": []any{}}},
			want:   map[string]any{"name": "a", "title": "b", "region": "us1", "disk": map[string]any{"sizeGB": int64(7), "classes": []any{}}},
		},
		"steps on a field of another type": {
			reason: "validation says what is wrong", applier: steps,
			before: map[string]any{"region": "us1", "size": int64(7), "disk": "big"},
			want:   map[string]any{"region": "us1", "size": int64(7), "disk": "big"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := object(tc.before)
			changed, err := tc.applier.Apply(o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(tc.want).Object, o.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if want := !cmp.Equal(tc.before, tc.want); changed != want {
				t.Errorf("changed: %t, want %t", changed, want)
			}
			if again, err := tc.applier.Apply(o); again || err != nil {
				t.Errorf("applied again: changed %t, error %v", again, err)
			}
		})
	}
}

var steps = fieldmigration.Steps{Steps: []fieldmigration.Step{
	fieldmigration.Default("region", "eu1"),
	fieldmigration.Copy("name", "title"),
	fieldmigration.Move("size", "disk.sizeGB"),
	fieldmigration.Default("disk.classes", []any{"ssd", 2}),
}}

func object(fields map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"kind": "Database", "spec": map[string]any{"forProvider": fields}}}
}

func TestApplyNeedsThePath(t *testing.T) {
	for name, o := range map[string]map[string]any{
		"no fields":     {"kind": "Database"},
		"another path":  {"spec": map[string]any{"parameters": map[string]any{"size": int64(7)}}},
		"an empty path": {"spec": map[string]any{"forProvider": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			before := (&unstructured.Unstructured{Object: o}).DeepCopy()
			changed, _ := databases.Apply(&unstructured.Unstructured{Object: o})
			if changed || !cmp.Equal(before.Object, o) {
				t.Errorf("%v was changed", o)
			}
		})
	}
	other := fieldmigration.Migration[database]{Path: "spec.parameters", Fill: fill}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"parameters": map[string]any{"size": int64(7)}}}}
	if changed, err := other.Apply(o); !changed || err != nil {
		t.Errorf("Path is not followed: %t, %v", changed, err)
	}
	if _, err := databases.Apply(object(map[string]any{"size": "seven"})); err == nil || !strings.Contains(err.Error(), "spec.forProvider") {
		t.Errorf("a size that is no number: %v, want an error that names the path", err)
	}
}
