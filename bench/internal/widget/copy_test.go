package widget

import (
	"encoding/json"
	"testing"
)

func TestTemplate(t *testing.T) {
	object, err := newTemplate([]byte(`{"kind":"Widget","metadata":{"name":"first","namespace":"default","uid":"1-2"},"spec":{"a":"b"}}`), "first")
	if err != nil {
		t.Fatal(err)
	}
	var copied struct {
		Kind     string
		Metadata struct{ Name, Namespace, UID string }
		Spec     struct{ A string }
	}
	if err := json.Unmarshal([]byte(object.named("second")), &copied); err != nil {
		t.Fatal(err)
	}
	if m := copied.Metadata; m.Name != "second" || m.Namespace != "default" || len(m.UID) != 36 || copied.Kind != "Widget" || copied.Spec.A != "b" {
		t.Errorf("the copy is %+v", copied)
	}
	for reason, foreign := range map[string]string{
		"no name":   `{"metadata":{"uid":"1"}}`,
		"no UID":    `{"metadata":{"name":"first"}}`,
		"two names": `{"metadata":{"name":"first","uid":"1"},"spec":{"name":"first"}}`,
	} {
		if _, err := newTemplate([]byte(foreign), "first"); err == nil {
			t.Errorf("%s: no error", reason)
		}
	}
}
