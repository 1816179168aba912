package externalname

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/externalname"
)

func TestNaming(t *testing.T) {
	for reason, test := range map[string]struct {
		expression, current string
		want                string
		invalid             *godwit.Reason
		err                 string
	}{
		"lower case":         {`name.lowerAscii()`, "ACME/Anna", "acme/anna", nil, ""},
		"as it is":           {`name.lowerAscii()`, "acme/anna", "acme/anna", nil, ""},
		"empty":              {`""`, "a", "a", nil, ""},
		"of the object":      {`object.spec.forProvider.org + "/" + name`, "anna", "acme/anna", nil, ""},
		"segments":           {`segments[1] + "@" + segments[0]`, "acme/a%2Fb", "a/b@acme", nil, ""},
		"escaped":            {`escape("a/b %") + "/" + name`, "x", "a%2Fb %25/x", nil, ""},
		"missing field":      {`object.spec.forProvider.team`, "a", "", nil, "no such key: team"},
		"optional field":     {`object.spec.forProvider.?team.orValue("none") + "/" + name`, "a", "none/a", nil, ""},
		"number":             {`object.spec.forProvider.size`, "a", "", nil, "want a string"},
		"outer space":        {`name + " "`, "a", "", externalname.ReasonBlank, ""},
		"control character":  {`name + "\n" + name`, "a", "", externalname.ReasonControlCharacter, ""},
		"too long":           {`name + name`, strings.Repeat("a", 300), "", externalname.ReasonTooLong, ""},
		"segment that is ..": {`escape("..")`, "a", "", nil, "PathElement"},
		"costs too much":     {`[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, [1,2,3,4,5,6,7,8,9,10].map(d, [1,2,3,4,5,6,7,8,9,10].map(e, [1,2,3,4,5,6,7,8,9,10].map(f, [1,2,3,4,5,6,7,8,9,10].map(g, 1))))))).size() > 0 ? "x" : "y"`, "a", "", nil, "cost"},
	} {
		t.Run(reason, func(t *testing.T) {
			o := &nameFlags{expression: test.expression, maxBytes: externalname.DefaultMaxBytes}
			naming, err := o.naming()
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"forProvider": map[string]any{"org": "acme", "size": int64(3)}}}}
			object.SetAnnotations(map[string]string{externalNameAnnotation: test.current})
			p, err := naming(t.Context(), object)
			if err != nil {
				t.Fatal(err)
			}
			var invalid *externalname.InvalidError
			switch {
			case test.invalid != nil:
				if !errors.As(p.Err, &invalid) || invalid.Reason != test.invalid {
					t.Errorf("the error is %v, want %s", p.Err, test.invalid)
				}
			case test.err != "":
				if p.Err == nil || !strings.Contains(p.Err.Error(), test.err) {
					t.Errorf("the error is %v, want %q", p.Err, test.err)
				}
			case p.Err != nil || p.Name != test.want:
				t.Errorf("the name is %q, %v, want %q", p.Name, p.Err, test.want)
			}
		})
	}
}
