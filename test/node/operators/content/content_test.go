package content_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/test/node/operators/content"
)

func one(uid types.UID, spec map[string]any, labels map[string]string) content.Snapshot {
	s := content.Snapshot{}
	all := map[string]any{}
	for name, value := range labels {
		all[name] = value
	}
	s.Add("Goose", &metav1.ObjectMeta{UID: uid, Namespace: "lake", Name: "a"}, map[string]any{"spec": spec, "labels": all})
	return s
}

func TestCompare(t *testing.T) {
	spec := func() map[string]any {
		return map[string]any{"eggs": []any{"blue", map[string]any{"size": int64(2)}}, "wings": map[string]any{"left": true}, "nothing": nil}
	}
	labels := map[string]string{"pond": "north"}
	changed := func(change func(map[string]any)) content.Snapshot {
		s := spec()
		change(s)
		return one("1", s, labels)
	}
	tests := map[string]struct {
		now     content.Snapshot
		givenUp []string
		want    content.Comparison
	}{
		"the same": {now: one("1", spec(), labels), want: content.Comparison{Objects: 1}},
		"an empty object, which a conversion adds": {
			now: changed(func(s map[string]any) { s["strategy"] = map[string]any{} }), want: content.Comparison{Objects: 1},
		},
		"the object is gone": {
			now: content.Snapshot{}, want: content.Comparison{Objects: 1, Lost: 1, Differences: []string{"Goose lake/a: it is gone"}},
		},
		"another object of its name": {
			now:  one("2", spec(), labels),
			want: content.Comparison{Objects: 1, Lost: 1, Differences: []string{"Goose lake/a: uid was 1 and is 2"}},
		},
		"another label": {
			now:  one("1", spec(), map[string]string{"pond": "south"}),
			want: content.Comparison{Objects: 1, Lost: 1, Differences: []string{`Goose lake/a: labels.pond was "north" and is "south"`}},
		},
		"a value of a list": {
			now:  changed(func(s map[string]any) { s["eggs"] = []any{"blue", map[string]any{"size": int64(3)}} }),
			want: content.Comparison{Objects: 1, Lost: 1, Differences: []string{"Goose lake/a: spec.eggs[1].size was 2 and is 3"}},
		},
		"an empty list in place of one with values": {
			now: changed(func(s map[string]any) { s["eggs"] = []any{} }),
			want: content.Comparison{Objects: 1, Lost: 1, Differences: []string{
				`Goose lake/a: spec.eggs is [] and was not there, spec.eggs[0] was "blue" and is gone, spec.eggs[1].size was 2 and is gone`,
			}},
		},
		"an empty item of a list": {
			now:  changed(func(s map[string]any) { s["eggs"] = append(s["eggs"].([]any), map[string]any{}) }),
			want: content.Comparison{Objects: 1, Lost: 1, Differences: []string{"Goose lake/a: spec.eggs[2] is {} and was not there"}},
		},
		"a value more": {
			now:  changed(func(s map[string]any) { s["age"] = int64(1) }),
			want: content.Comparison{Objects: 1, Lost: 1, Differences: []string{"Goose lake/a: spec.age is 1 and was not there"}},
		},
		"a value that was given up is gone": {
			now: changed(func(s map[string]any) { delete(s, "wings") }), givenUp: []string{"spec.wings.left"},
			want: content.Comparison{Objects: 1, GivenUp: map[string]int{"spec.wings.left": 1}},
		},
		"a value that was given up has changed": {
			now: changed(func(s map[string]any) { s["wings"] = map[string]any{"left": false} }), givenUp: []string{"spec.wings.left"},
			want: content.Comparison{Objects: 1, Lost: 1, Differences: []string{"Goose lake/a: spec.wings.left was true and is false"}},
		},
		"another value is gone than that which was given up": {
			now: changed(func(s map[string]any) { delete(s, "nothing") }), givenUp: []string{"spec.wings.left"},
			want: content.Comparison{Objects: 1, Lost: 1, Differences: []string{"Goose lake/a: spec.nothing was null and is gone"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.want.GivenUp == nil {
				test.want.GivenUp = map[string]int{}
			}
			if diff := cmp.Diff(test.want, content.Compare(one("1", spec(), labels), test.now, test.givenUp...)); diff != "" {
				t.Errorf("the comparison (-want +got):\n%s", diff)
			}
		})
	}
}
