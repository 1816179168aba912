package revisionupgrade

import (
	"cmp"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/revision"
)

// concurrentNamespaces is the number of namespaces that are advanced concurrently. They share one limiter, and spend most of
// their time waiting for the API server.
const concurrentNamespaces = 4

// Upgrades advances the ControllerRevisionUpgrades of one namespace at a time.
type Upgrades struct {
	// Client reads the cache, which has of each upgrade what [NewCacheTransform] keeps.
	Client client.Client
	// Reader asks the API server.
	Reader   client.Reader
	Recorder events.EventRecorder
	Upgrader *revision.Upgrader
	Clock    clock.PassiveClock

	schedule schedule
	pool     upgraderPool
}

// defaultScanEvery is the time between two scans of a continuous trigger. A scan reads every virtual machine and revision in
// scope.
const defaultScanEvery = 10 * time.Minute

// Triggers creates upgrades and counts them.
type Triggers struct {
	// Client reads the cache, which has of each upgrade what [NewCacheTransform] keeps.
	Client client.Client
	// Reader asks the API server: a cache may still have a trigger as it was before its scan.
	Reader   client.Reader
	Recorder events.EventRecorder
	Upgrader *revision.Upgrader
	Clock    clock.PassiveClock
	// ScanEvery is the time between two scans of a continuous trigger; 0 means ten minutes.
	ScanEvery time.Duration
	// MaxWritesPerSecond is the limit of the Upgrader, for messages; 0 means none.
	MaxWritesPerSecond float64
}

func (t *Triggers) scanEvery() time.Duration { return cmp.Or(t.ScanEvery, defaultScanEvery) }

// maxSamples bounds the lists of a status, as the CRDs do.
const maxSamples = 20
