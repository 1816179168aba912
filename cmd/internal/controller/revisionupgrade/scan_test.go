package revisionupgrade

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestNameOfAnUpgrade is one that the API server takes, however long the revision's
// is, and wherever it has its dots.
func TestNameOfAnUpgrade(t *testing.T) {
	const uid = "5d0c2cf4-6d2b-4a47-8f0e-7d2f3f51b102"
	if got := UpgradeName("web-u1.medium-1", uid); got != "web-u1.medium-1-5d0c2cf4" {
		t.Error(got)
	}
	if got := UpgradeName("web-u1.medium-1", ""); got != "web-u1.medium-1-gone" {
		t.Error(got)
	}
	for cut := 240; cut < 248; cut++ {
		got := UpgradeName(strings.Repeat("a", cut)+"."+strings.Repeat("b", 252-cut), uid)
		if why := validation.IsDNS1123Subdomain(got); len(why) > 0 || !strings.HasSuffix(got, "-5d0c2cf4") {
			t.Errorf("%s: %v", got, why)
		}
	}
}
