package managedfields

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	cleaned = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

	// v1 is removed, v2 is served, v3 is served and stored.
	cleaner = &Cleaner{
		group: "example.com", storage: "v3", served: []string{"v2", "v3"}, now: func() time.Time { return cleaned },
	}
)

const (
	applied = metav1.ManagedFieldsOperationApply
	updated = metav1.ManagedFieldsOperationUpdate
)

// owner is an entry that owns a field of its manager's name.
func owner(manager string, operation metav1.ManagedFieldsOperationType, apiVersion string, subresource ...string) metav1.ManagedFieldsEntry {
	written := metav1.NewTime(cleaned.Add(-time.Hour))
	e := metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: apiVersion, Time: &written,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:` + manager + `":{}}}`),
	}
	if len(subresource) > 0 {
		e.Subresource = subresource[0]
	}
	return e
}

// seed is the entry that takes the place of all others.
func seed(manager string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
	now := metav1.NewTime(cleaned)
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "example.com/v3", Time: &now,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:name":{}}}`),
	}
}

func TestConverted(t *testing.T) {
	a1, a2, b3 := owner("a", applied, "example.com/v1"), owner("a", applied, "example.com/v2", "status"), owner("b", updated, "example.com/v3")
	type entries = []metav1.ManagedFieldsEntry
	cases := map[string]struct {
		reason string
		in     entries
		want   bool
	}{
		"none":              {"there is nothing to convert", nil, false},
		"at the stored one": {"the request is at the same version", entries{b3}, false},
		"at another one":    {"also of a subresource", entries{b3, a2}, true},
		"at a removed one":  {"the server reads no entry then", entries{a2, a1}, false},
		"of another group":  {"as one that is removed", entries{owner("a", applied, "v1"), a2}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			webhook := *cleaner
			webhook.webhook = true
			if got := webhook.Converted(tc.in); got != tc.want {
				t.Errorf("converted = %t, want %t: %s", got, tc.want, tc.reason)
			}
			if cleaner.Converted(tc.in) || (*Cleaner)(nil).Converted(tc.in) {
				t.Error("converted without a webhook, or without a CRD, want not")
			}
		})
	}
}

func TestCleanManagedFields(t *testing.T) {
	a1, b1, c1 := owner("a", applied, "example.com/v1"), owner("b", updated, "example.com/v1"), owner("c", updated, "example.com/v1", "status")
	a2, b3, c2 := owner("a", applied, "example.com/v2"), owner("b", updated, "example.com/v3"), owner("c", updated, "example.com/v2", "status")
	later := b3
	later.FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{"f:later":{}}}`)
	type entries = []metav1.ManagedFieldsEntry
	cases := map[string]struct {
		reason   string
		in, want entries
	}{
		"no entries":                     {"an object without field managers stays so: an empty list would mean a reset", entries{}, nil},
		"nil":                            {"as above", nil, nil},
		"nothing stale":                  {"every version that is served is good, not only the stored one", entries{a2, b3, c2}, nil},
		"first":                          {"what stays keeps its order", entries{a1, b3, c2}, entries{b3, c2}},
		"between":                        {"what stays keeps its order", entries{c2, b1, a2}, entries{c2, a2}},
		"subresource":                    {"an entry of a subresource goes by its version, like any other", entries{a2, c1, b3}, entries{a2, b3}},
		"only a subresource's stays":     {"it is an entry: nothing is to be seeded", entries{a1, b1, c2}, entries{c2}},
		"duplicates that stay":           {"which of them counts is for the server to decide, by their order", entries{b3, a1, later}, entries{b3, later}},
		"duplicates that go":             {"each of them is read by the server", entries{b1, b1, a2}, entries{a2}},
		"an apply at two versions":       {"the same manager to the server, which takes the last: the readable one must be it", entries{a2, a1}, entries{a2}},
		"all":                            {"the first that was removed names the seed", entries{b1, a1, c1}, entries{seed("b", updated)}},
		"one apply":                      {"its manager's next apply takes the seed over", entries{a1}, entries{seed("a", applied)}},
		"only a subresource's":           {"the seed owns the name, which is none of the subresource's", entries{c1, a1}, entries{seed("c", updated)}},
		"another group":                  {"the server can't convert to it", entries{owner("a", applied, "example.org/v3"), b3}, entries{b3}},
		"the core group":                 {"v3 alone is no version of this group", entries{owner("a", applied, "v3"), b3}, entries{b3}},
		"a group that ends the same":     {"names are compared whole", entries{owner("a", applied, "sub.example.com/v3"), b3}, entries{b3}},
		"a version that begins the same": {"names are compared whole", entries{owner("a", applied, "example.com/v3beta1"), b3}, entries{b3}},
		"unparsable":                     {"the entry can't be read", entries{owner("a", applied, "example.com/v3/x"), b3}, entries{b3}},
		"no apiVersion":                  {"the server refuses the whole list for it", entries{owner("a", applied, ""), b3}, entries{b3}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := copyOf(tc.in)
			got, changed := cleaner.Clean(tc.in)
			if diff := cmp.Diff(in, tc.in); diff != "" {
				t.Errorf("clean altered its argument (-before +after):\n%s", diff)
			}
			if changed != (tc.want != nil) {
				t.Fatalf("changed = %t: %s", changed, tc.reason)
			}
			if !changed {
				tc.want = in
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func copyOf(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	copied := slices.Clone(entries)
	for i := range copied {
		copied[i] = *entries[i].DeepCopy()
	}
	return copied
}

// FuzzCleanManagedFields feeds entries as an API server would send them, and others.
func FuzzCleanManagedFields(f *testing.F) {
	for _, apiVersions := range [][]string{nil, {"example.com/v1"}, {"example.com/v1", "example.com/v2"}, {"v3", "///", ""}} {
		var entries []metav1.ManagedFieldsEntry
		for _, v := range apiVersions {
			entries = append(entries, owner("a", updated, v))
		}
		data, err := json.Marshal(entries)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var entries []metav1.ManagedFieldsEntry
		if json.Unmarshal(data, &entries) != nil {
			t.Skip()
		}
		before := copyOf(entries)
		once, changed := cleaner.Clean(entries)
		if diff := cmp.Diff(before, entries); diff != "" {
			t.Errorf("clean altered its argument:\n%s", diff)
		}
		if changed != slices.ContainsFunc(entries, cleaner.isStale) {
			t.Errorf("changed = %t for %s", changed, data)
		}
		if slices.ContainsFunc(once, cleaner.isStale) {
			t.Errorf("a stale entry stays: %+v", once)
		}
		if (len(once) == 0) != (len(entries) == 0) {
			t.Errorf("%d entries become %d: an empty list is a reset to the server", len(entries), len(once))
		}
		twice, changed := cleaner.Clean(once)
		if diff := cmp.Diff(once, twice); changed || diff != "" {
			t.Errorf("cleaning again changes what is clean:\n%s", diff)
		}
	})
}
