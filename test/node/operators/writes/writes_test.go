package writes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/godwit-dev/godwit/test/node/operators/writes"
)

// line is an event of an audit log.
func line(verb, agent, name, version string) string {
	return fmt.Sprintf(`{"verb":%q,"userAgent":"%s/v1","requestURI":"/apis/example.com/v2/namespaces/lake/geese/%s?fieldManager=x",`+
		`"objectRef":{"apiGroup":"example.com","resource":"geese","namespace":"lake","name":%q},"responseStatus":{"code":200},`+
		`"responseObject":{"metadata":{"name":%q,"resourceVersion":%q}}}`+"\n", verb, agent, name, name, name, version)
}

func trim(agent string) string {
	return fmt.Sprintf(`{"verb":"patch","userAgent":"%s/v1","requestURI":"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/geese.example.com/status",`+
		`"objectRef":{"apiGroup":"apiextensions.k8s.io","resource":"customresourcedefinitions","subresource":"status","name":"geese.example.com"},`+
		`"responseStatus":{"code":200},"responseObject":{"metadata":{"name":"geese.example.com","resourceVersion":"9"},"status":{"storedVersions":["v2"]}}}`+"\n", agent)
}

func TestRead(t *testing.T) {
	created := line("create", "test", "a", "1") + line("create", "test", "b", "2")
	once := created + line("patch", "godwit", "a", "3") + line("patch", "godwit", "b", "4") + trim("godwit")
	type counts = map[string]int
	tests := map[string]struct {
		log  string
		want writes.Log
	}{
		"each object is written once": {log: once, want: writes.Log{Changed: counts{"godwit": 2}, Trims: []string{"godwit"}}},
		"a write that changes nothing is repeated": {
			log:  once + line("patch", "godwit", "a", "3"),
			want: writes.Log{Changed: counts{"godwit": 2}, Equal: counts{"godwit": 1}, Trims: []string{"godwit"}, Repeated: []string{"godwit has written lake/a again"}},
		},
		"another program writes what is migrated": {
			log:  once + line("update", "other", "a", "3"),
			want: writes.Log{Changed: counts{"godwit": 2}, Equal: counts{"other": 1}, Trims: []string{"godwit"}},
		},
		"another program changes what is migrated": {
			log:  once + line("update", "other", "a", "5"),
			want: writes.Log{Changed: counts{"godwit": 2, "other": 1}, Trims: []string{"godwit"}, Repeated: []string{"lake/a has changed again, by other"}},
		},
		"dry runs, refused writes and other resources": {
			log: created + strings.ReplaceAll(line("patch", "godwit", "a", "3"), "fieldManager=x", "dryRun=All") +
				strings.ReplaceAll(line("patch", "godwit", "a", "3"), `"code":200`, `"code":409`) +
				strings.ReplaceAll(line("patch", "godwit", "a", "3"), `"resource":"geese"`, `"resource":"ducks"`),
		},
		"two trims": {
			log:  trim("godwit") + trim("other"),
			want: writes.Log{Trims: []string{"godwit", "other"}},
		},
		"the program that trims writes the status again": {log: trim("godwit") + trim("godwit"), want: writes.Log{Trims: []string{"godwit"}}},
		"a status with two versions":                     {log: strings.ReplaceAll(trim("other"), `["v2"]`, `["v1","v2"]`)},
		"the conditions of the CRD":                      {log: trim("kube-apiserver")},
		"a line that is not yet written":                 {log: created + strings.TrimSuffix(line("patch", "godwit", "a", "3"), "}}}\n")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, m := range []*counts{&test.want.Changed, &test.want.Equal} {
				if *m == nil {
					*m = counts{}
				}
			}
			got, err := writes.Read(strings.NewReader(test.log), "example.com", "geese")
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("the log: %v (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, err := writes.Read(strings.NewReader("{\n"), "example.com", "geese"); err == nil {
		t.Error("a broken line is accepted")
	}
}
