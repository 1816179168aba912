package revision_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/decision"
	"github.com/godwit-dev/godwit/revision/reference"
)

// laterFamily is a testFamily of software that knows workloads at another version alone.
type laterFamily struct{ testFamily }

func (k laterFamily) Describe() decision.Description {
	d := k.testFamily.Describe()
	d.Referrers = []reference.Type{{Resource: schema.GroupResource{Group: testGroup, Resource: "workloads"}, Versions: []string{"v9"}, Read: readWorkload}}
	return d
}

// TestReferrerAtAnUnknownVersion: what exists and can't be read may refer to anything,
// and to leave it out would remove what it refers to.
func TestReferrerAtAnUnknownVersion(t *testing.T) {
	t.Parallel()
	u, err := revision.New(shared.Config(), laterFamily{}, revision.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = u.Inventory(t.Context())
	if err == nil || !strings.Contains(err.Error(), "workloads."+testGroup) || !strings.Contains(err.Error(), "[v9]") {
		t.Errorf("the inventory ends with %v, want an error that names the resource and what is known of it", err)
	}
}
