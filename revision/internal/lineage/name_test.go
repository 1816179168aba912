package lineage

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
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
		"any order of keys": {"the hash is that of what jq prints", `{"b":{"y":2,"x":[1,{"d":1,"c":2}]},"a":"<1 & 2>"}`, plain},
		"in an answer of the API server": {
			"Go's encoder writes the special characters of HTML in another way", `{"b":{"y":2,"x":[1,{"d":1,"c":2}]},"a":"\u003c1 \u0026 2\u003e"}`, plain,
		},
		"in a backup": {
			"a manifest has white space, and its keys in order", "{\n  \"a\": \"<1 & 2>\",\n  \"b\": {\"x\": [1, {\"c\": 2, \"d\": 1}], \"y\": 2}\n}\n", plain,
		},
		"a number of 17 digits": {"no digit is lost", `{"n":9007199254740993}`, number},
		"no JSON":               {"no API server stores it, so that it has no hash", `{"a"`, ""},
	} {
		got := Hash(&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(test.data)}})
		if got != test.want {
			t.Errorf("%s: %s, want %s: %s", name, got, test.want, test.reason)
		}
	}
}

// TestSuffixAfterDot: a dash may not follow the dot at which a name is cut, since no API server
// accepts that name.
func TestSuffixAfterDot(t *testing.T) {
	t.Parallel()
	for cut := 240; cut < 248; cut++ {
		name := strings.Repeat("a", cut) + "." + strings.Repeat("b", 252-cut)
		got := SuffixedName(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if why := validation.IsDNS1123Subdomain(got); len(why) > 0 {
			t.Errorf("%s: %v", got, why)
		}
	}
}
