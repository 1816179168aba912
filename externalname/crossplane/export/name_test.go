package export

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// 45: names are valid and unique, whatever the external system has, and do not depend on an order.
func TestUniqueNames(t *testing.T) {
	proposed := map[string]string{
		"1": "Jane", "2": "jane", "3": "Jörg Müller", "4": "", "5": "///", "6": strings.Repeat("x", 300), "7": strings.Repeat("x", 300) + "y",
		"9": "-a-", "10": "日本", "11": "a.b",
	}
	names := checkNames(t, proposed)
	if names["9"] != "a" || names["11"] != "a-b" || !strings.HasPrefix(names["1"], "jane-") || !strings.HasPrefix(names["6"], "xxx") {
		t.Errorf("names are %v", names)
	}
	for range 10 {
		if diff := cmp.Diff(names, uniqueNames(proposed)); diff != "" {
			t.Fatalf("names depend on the order of a map:\n%s", diff)
		}
	}
}

// A user who knows the rule chooses names that others will have, at each length of the digest.
func TestChosenNames(t *testing.T) {
	proposed := map[string]string{"1": "jane", "2": "Jane"}
	for length := digestStep; length <= nameBytes; length++ {
		proposed[fmt.Sprint("chosen", length)] = withDigest("jane", "1", length)
	}
	checkNames(t, proposed)
}

func checkNames(t *testing.T, proposed map[string]string) map[string]string {
	t.Helper()
	names, taken := uniqueNames(proposed), map[string]string{}
	valid := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	for external, name := range names {
		if !valid.MatchString(name) || len(name) > nameBytes {
			t.Errorf("%q becomes %q", proposed[external], name)
		}
		if other, ok := taken[name]; ok {
			t.Errorf("%q and %q are both %q", other, external, name)
		}
		taken[name] = external
	}
	if len(names) != len(proposed) {
		t.Errorf("%d names for %d resources", len(names), len(proposed))
	}
	return names
}
