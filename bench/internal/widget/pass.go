package widget

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/godwit-dev/godwit/bench/internal/frame"
)

// PatchAll is the ceiling: it sends an empty merge patch for each name at the storage version, width at a time, and requests the
// smallest possible response.
func (r *Resource) PatchAll(ctx context.Context, width int) (time.Duration, error) {
	client, err := metadata.NewForConfig(metadata.ConfigFor(r.cluster.User))
	if err != nil {
		return 0, err
	}
	objects := client.Resource(schema.GroupVersionResource{Group: r.group, Version: r.storage, Resource: Plural}).Namespace(Namespace)
	began := time.Now()
	err = frame.Each(r.names, width, func(name string) error {
		_, err := objects.Patch(ctx, name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{FieldValidation: metav1.FieldValidationIgnore})
		return err
	})
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	return took, r.MustBeMigrated(ctx)
}

// WarmUp makes passes before the first turn. An API server that has just started is up to a third slower, because Go collects
// garbage more often while the heap is small.
func (r *Resource) WarmUp(ctx context.Context) error {
	for range 3 {
		if err := r.FlipAndProbe(ctx); err != nil {
			return err
		}
		if _, err := r.PatchAll(ctx, frame.InFlight[1]); err != nil {
			return err
		}
	}
	return nil
}

// PrepareTurn stores every object at the other version, and waits. It first patches each object once. This changes an object only if
// the turn before ended early, and makes every turn follow fast requests and a pause, whichever turn came before.
func (r *Resource) PrepareTurn(ctx context.Context) error {
	if _, err := r.PatchAll(ctx, frame.InFlight[1]); err != nil {
		return err
	}
	return r.FlipAndAge(ctx)
}

// Report is the measured part of the JSON of `godwit crd run`, with the cost of the run.
type Report struct {
	Objects struct {
		Migrated int64 `json:"migrated"`
		Skipped  int64 `json:"skipped"`
	} `json:"objects"`
	Requests int64 `json:"requests"`
	Trimmed  bool  `json:"trimmed"`

	Cost frame.Cost `json:"-"`
}

// RunArgs returns the arguments of `godwit crd run` for the resource. The run does not wait, because the storage version changed
// long ago.
func (r *Resource) RunArgs(flags ...string) []string {
	return append([]string{"crd", "run", r.CRD(), "--yes", "--settle=0s"}, flags...)
}

// Run migrates all objects with `godwit crd run`, and fails unless etcd then holds every object at the storage version.
func (r *Resource) Run(ctx context.Context, flags ...string) (Report, error) {
	var list struct {
		Items []Report `json:"items"`
	}
	cost, err := r.cluster.Run(ctx, frame.ExitDone, &list, r.RunArgs(flags...)...)
	if err != nil {
		return Report{}, err
	}
	if len(list.Items) != 1 {
		return Report{}, fmt.Errorf("godwit reports %d migrations, want 1", len(list.Items))
	}
	report := list.Items[0]
	report.Cost = cost
	return report, r.MustBeMigrated(ctx)
}
