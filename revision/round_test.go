package revision

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/godwit-dev/godwit/walk"
)

// Tasks are kept until their namespace is done, and it may have tens of thousands: what
// a step read must not be kept along, whether the step went well or not.
func TestTasksKeepNoData(t *testing.T) {
	t.Parallel()
	read := func(name string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "virt-controller"}}},
			Data:       runtime.RawExtension{Raw: []byte(`{"kind":"VirtualMachinePreference"}`)},
		}
	}
	r := &round{Upgrader: &Upgrader{options: Options{Limiter: walk.NewLimiter(walk.Limits{})}}, namespace: &namespace{Census: newCensus("shop")}}
	tasks := []*task{{wish: Wish{Name: "good"}}, {wish: Wish{Name: "bad"}}}
	var seen []byte
	_ = r.visit(t.Context(), tasks, func(_ context.Context, one *task) error {
		one.source, one.successor = read(one.GetName()), read(one.GetName()+"-new")
		if one.GetName() == "bad" {
			return errors.New("not today")
		}
		seen = one.source.Data.Raw
		return nil
	})
	if len(seen) == 0 {
		t.Error("the step itself had no data")
	}
	for _, one := range tasks {
		for _, there := range []*appsv1.ControllerRevision{one.source, one.successor} {
			if there.Data.Raw != nil || there.ManagedFields != nil {
				t.Errorf("%s is kept with its data", there.Name)
			}
			if there.ResourceVersion != "1" {
				t.Errorf("%s has lost what a later step goes by", there.Name)
			}
		}
	}
}
