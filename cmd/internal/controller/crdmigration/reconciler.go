package crdmigration

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/internal/status"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
	"github.com/godwit-dev/godwit/walk"
)

// Reconciler reconciles CRDMigrations.
type Reconciler struct {
	Client   client.Client
	Reader   client.Reader // live
	Config   *rest.Config
	Recorder events.EventRecorder
	// Defaults are the values for fields that a CRDMigration does not set.
	Defaults v1alpha1.CRDMigrationSpec
	// Limiter paces all migrations together.
	Limiter *walk.Limiter
	// MaxWritesPerSecond is the rate of Limiter; 0 means none.
	MaxWritesPerSecond float64
	// Instance is this manager.
	Instance InstanceID
	// InScope reports whether a CRD is still in the manager's scope. It is called only for migrations that the manager
	// created.
	InScope func(crd metav1.Object) bool
	Metrics *Metrics

	mu         sync.Mutex
	migrations map[string]*migration // by name
	pace       status.Pace           // of the progress of all
}

// migration is the manager's memory of one CRDMigration. If it is lost, the manager only repeats some requests: the
// checkpoint is in the status.
type migration struct {
	*Reconciler
	name       string
	uid        types.UID
	generation int64
	spec       v1alpha1.CRDMigrationSpec // with the defaults
	migrator   *storageversion.Migrator
	status     *status.Writer[*v1alpha1.CRDMigration]

	plan     *decision.Plan // of a run that waits until the API servers have settled
	history  decision.History
	reported time.Time // when a lack of convergence was last announced
}
