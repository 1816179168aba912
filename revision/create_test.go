package revision

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// A name that is cut where it has a dot must not go on with a dash: no server takes it.
func TestSuffixAfterADot(t *testing.T) {
	t.Parallel()
	for cut := 240; cut < 248; cut++ {
		name := strings.Repeat("a", cut) + "." + strings.Repeat("b", 252-cut)
		got := suffixed(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if why := validation.IsDNS1123Subdomain(got); len(why) > 0 {
			t.Errorf("%s: %v", got, why)
		}
	}
}
