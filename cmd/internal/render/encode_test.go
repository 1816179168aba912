package render

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestListIsEncodedItemByItem: the text is that of the whole document.
func TestListIsEncodedItemByItem(t *testing.T) {
	t.Parallel()
	type item struct {
		Name  string   `json:"name"`
		Items []string `json:"items"`
	}
	for reason, items := range map[string][]item{
		"no items are a list, too":             nil,
		"one item has no comma":                {{Name: `a "b" <c> & "items": []`, Items: []string{}}},
		"items with items are indented deeper": {{Name: "a", Items: []string{"x", "y"}}, {Name: "b"}},
	} {
		list := NewList("ExampleList", items)
		type whole List[item] // without EncodeJSON
		var got, want bytes.Buffer
		if err := Encode(&got, list); err != nil {
			t.Fatal(err)
		}
		if err := Encode(&want, whole(list)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}
