package objectname

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// words returns all texts of up to n letters of an alphabet in which hyphens and dots separate.
func words(n int) []string {
	all := []string{""}
	for from := 0; n > 0; n-- {
		to := len(all)
		for _, w := range all[from:to] {
			for _, letter := range "ab-." {
				all = append(all, w+string(letter))
			}
		}
		from = to
	}
	return all
}

// TestNamesDiffer: objects for different hubs, users and clusters have different names, each valid.
//
// Matrix: H98.
func TestNamesDiffer(t *testing.T) {
	t.Parallel()
	var hubs, users []string
	for _, w := range words(4) {
		if len(validation.IsDNS1123Label(w)) == 0 {
			hubs = append(hubs, w)
		}
		if w == "" || len(validation.IsDNS1123Subdomain(w)) == 0 {
			users = append(users, w)
		}
	}
	long := strings.Repeat("a", 250)
	hubs = append(hubs, strings.Repeat("h", 63), "hub-kubeconfig", "hub-kubeconfig-current-hub", "east", "east-prod")
	users = append(users, "prod", long, long+"a", long+"b", KlusterletConfig(hubs[0], long)[len(longMigration)+len(hubs[0])+1:])
	if len(hubs) < 20 || len(users) < 50 {
		t.Fatalf("%d hubs and %d users", len(hubs), len(users))
	}
	seen := map[string]string{}
	add := func(kind, name, what string) {
		t.Helper()
		if len(validation.IsDNS1123Subdomain(name)) > 0 || len(name) > maxName {
			t.Errorf("%s: %q is not a valid name", what, name)
		}
		if other, ok := seen[kind+name]; ok {
			t.Errorf("%s and %s have the same name %q", what, other, name)
		}
		seen[kind+name] = what
	}
	for _, name := range importController {
		add("Secret ", name, "the import controller")
	}
	for _, hub := range hubs {
		add("Secret ", BootstrapSecret(hub), "the bootstrap secret of hub "+hub)
		add("Secret ", Return(hub), "the return secret of cluster "+hub)
		add("KlusterletConfig ", Return(hub), "the KlusterletConfig that returns cluster "+hub)
		for _, user := range users {
			add("KlusterletConfig ", KlusterletConfig(hub, user), fmt.Sprintf("the KlusterletConfig of hub %s for %q", hub, user))
		}
	}
}
