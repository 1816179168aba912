package revision

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestHash(t *testing.T) {
	t.Parallel()
	const (
		plain  = "1408763202bc1a38746a9b51efe4e92d765044a75be5ac3d3fb96ec7a7b4c979" // by jq and sha256sum
		number = "4ac8309cc76123ef6c5325ef925fc873e9b5856ec4f844ef1462f9303960378a"
	)
	for name, test := range map[string]struct {
		reason, data, want string
	}{
		"as somebody wrote it": {"it is what jq makes of it", `{"b":{"y":2,"x":[1,{"d":1,"c":2}]},"a":"<1 & 2>"}`, plain},
		"as an API server answers": {
			"Go's encoder writes signs of HTML in another way", `{"b":{"y":2,"x":[1,{"d":1,"c":2}]},"a":"\u003c1 \u0026 2\u003e"}`, plain,
		},
		"as a backup has it": {
			"a manifest has white space, and its keys in order", "{\n  \"a\": \"<1 & 2>\",\n  \"b\": {\"x\": [1, {\"c\": 2, \"d\": 1}], \"y\": 2}\n}\n", plain,
		},
		"a number of 17 digits": {"no digit is lost on the way", `{"n":9007199254740993}`, number},
		"no JSON":               {"no server stores it, and nothing is claimed of it", `{"a"`, ""},
	} {
		got := Hash(&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(test.data)}})
		if got != test.want {
			t.Errorf("%s: %s, want %s: %s", name, got, test.want, test.reason)
		}
	}
}
