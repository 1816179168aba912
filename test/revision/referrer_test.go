package revision_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/revision"
	"github.com/godwit-dev/godwit/revision/reference"
)

// laterKitchen is a kitchen of software that knows meals at another version alone.
type laterKitchen struct{ kitchen }

func (k laterKitchen) Describe() revision.Description {
	d := k.kitchen.Describe()
	d.Referrers = []reference.Type{{Resource: schema.GroupResource{Group: kitchenGroup, Resource: "meals"}, Versions: []string{"v9"}, Read: readMeal}}
	return d
}

// TestReferrerAtAnUnknownVersion: what exists and can't be read may refer to anything,
// and to leave it out would remove what it refers to.
func TestReferrerAtAnUnknownVersion(t *testing.T) {
	t.Parallel()
	u, err := revision.New(shared.Config(), laterKitchen{}, revision.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = u.Inventory(t.Context())
	if err == nil || !strings.Contains(err.Error(), "meals."+kitchenGroup) || !strings.Contains(err.Error(), "[v9]") {
		t.Errorf("the survey ends with %v, want an error that names the resource and what is known of it", err)
	}
}
