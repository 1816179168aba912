package etcdverify

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

var widgets = schema.GroupResource{Group: "example.com", Resource: "widgets"}

// table is an etcd that holds what it is given.
type table map[string]string

func (t table) Range(_ context.Context, from, to string, limit, revision int64) ([]Pair, int64, error) {
	if revision != 0 && revision != 7 {
		return nil, 0, fmt.Errorf("revision %d was never handed out", revision)
	}
	var keys []string
	for k := range t {
		if k >= from && k < to {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	if int64(len(keys)) > limit {
		keys = keys[:limit]
	}
	pairs := make([]Pair, len(keys))
	for i, k := range keys {
		pairs[i] = Pair{Key: k, Value: []byte(t[k])}
	}
	return pairs, 7, nil
}

func TestScanCountsWhatIsStored(t *testing.T) {
	cborObject, err := direct.Marshal(map[string]any{"apiVersion": "example.com/v2", "kind": "Widget", "spec": map[string]any{"a": 1}})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		stored table
		want   Count
	}{
		"empty": {
			reason: "no object is a count, not an error",
			want:   Count{ByVersion: map[string]int64{}},
		},
		"both versions": {
			reason: "namespaced and cluster-scoped keys count alike",
			stored: table{
				"/registry/example.com/widgets/ns/a": `{"apiVersion":"example.com/v1","kind":"Widget"}`,
				"/registry/example.com/widgets/ns/b": `{"kind":"Widget","apiVersion":"example.com/v2"}`,
				"/registry/example.com/widgets/c":    `{"apiVersion":"example.com/v2"}`,
			},
			want: Count{Objects: 3, ByVersion: map[string]int64{"v1": 1, "v2": 2}, Namespaced: 2},
		},
		"neighbours": {
			reason: "a resource whose name begins alike is another resource",
			stored: table{
				"/registry/example.com/widgets/ns/a":      `{"apiVersion":"example.com/v1"}`,
				"/registry/example.com/widgetsets/ns/a":   `{"apiVersion":"example.com/v1"}`,
				"/registry/example.com/widgets-old/ns/a":  `{"apiVersion":"example.com/v1"}`,
				"/registry/example.com.au/widgets/ns/a":   `{"apiVersion":"example.com.au/v1"}`,
				"/registry/apps/widgets/example.com/fake": `{"apiVersion":"apps/v1"}`,
			},
			want: Count{Objects: 1, ByVersion: map[string]int64{"v1": 1}, Namespaced: 1},
		},
		"CBOR": {
			reason: "the server may store CBOR instead of JSON",
			stored: table{"/registry/example.com/widgets/ns/a": "\xd9\xd9\xf7" + string(cborObject)},
			want:   Count{Objects: 1, ByVersion: map[string]int64{"v2": 1}, Namespaced: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Scan(t.Context(), tc.stored, DefaultPrefix, widgets)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestScanNeverCallsAnUnreadableObjectProven(t *testing.T) {
	unreadable := map[string]string{
		"encrypted at rest":   "k8s:enc:aescbc:v1:key1:\x00\x01",
		"cut off":             `{"apiVersion":"example.com/v2`,
		"no apiVersion":       `{"kind":"Widget"}`,
		"of another group":    `{"apiVersion":"other.com/v2"}`,
		"group left out":      `{"apiVersion":"v2"}`,
		"protobuf":            "k8s\x00\x0a\x10",
		"broken CBOR":         "\xd9\xd9\xf7\xff",
		"apiVersion a number": `{"apiVersion":2}`,
	}
	for reason, value := range unreadable {
		stored := table{
			"/registry/example.com/widgets/ns/a": `{"apiVersion":"example.com/v2"}`,
			"/registry/example.com/widgets/ns/b": value,
		}
		got, err := Scan(t.Context(), stored, DefaultPrefix, widgets)
		if err != nil {
			t.Fatal(err)
		}
		if got.Unreadable != 1 || got.Objects != 2 || got.UnreadableWhy == "" {
			t.Errorf("%s: Scan = %+v, want one unreadable of two, with its reason", reason, got)
		}
		if got.Proven("v2") {
			t.Errorf("%s: an object that can't be read was called proven", reason)
		}
	}
}

func TestScanReadsEveryPageAtOneRevision(t *testing.T) {
	stored := table{}
	for i := range 3*pageKeys + 1 {
		stored[fmt.Sprintf("/other/example.com/widgets/ns/w%04d", i)] = `{"apiVersion":"example.com/v1"}`
	}
	got, err := Scan(t.Context(), stored, "other", widgets)
	if err != nil {
		t.Fatal(err)
	}
	if got.Objects != 3*pageKeys+1 {
		t.Errorf("Objects = %d, want %d", got.Objects, 3*pageKeys+1)
	}
}

type broken struct{ error }

func (b broken) Range(context.Context, string, string, int64, int64) ([]Pair, int64, error) {
	return nil, 0, b.error
}

func TestScanReportsWhatEtcdSaid(t *testing.T) {
	cause := errors.New("etcdserver: permission denied")
	if _, err := Scan(t.Context(), broken{cause}, DefaultPrefix, widgets); !errors.Is(err, cause) {
		t.Errorf("Scan = %v, want it to wrap %v", err, cause)
	}
}

func FuzzStoredVersion(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"example.com/v1"}`))
	f.Add([]byte("\xd9\xd9\xf7\xa1"))
	f.Add([]byte("k8s:enc:"))
	f.Fuzz(func(t *testing.T, value []byte) {
		version, err := storedVersion(value, "example.com")
		if (err == nil) != (version != "") {
			t.Errorf("storedVersion(%q) = %q, %v: a version or an error, never both or none", value, version, err)
		}
	})
}
