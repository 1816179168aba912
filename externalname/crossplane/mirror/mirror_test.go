package mirror

import (
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	"github.com/google/go-cmp/cmp"
)

type mirrored struct {
	fake.Managed

	Spec struct {
		ForProvider struct {
			Name     string `json:"name"`
			Title    string `json:"title,omitempty"`
			Password string `json:"password"`
		}
	}
	Status struct {
		AtProvider *struct {
			Name string `json:"name"`
			ID   string `json:"id"`
		}
	}
}

func TestMissing(t *testing.T) {
	got, err := Missing(&mirrored{}, "password")
	if diff := cmp.Diff([]string{"title"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := Missing(&fake.Managed{}); err == nil {
		t.Error("a kind without spec.forProvider has no fields to mirror")
	}
}
