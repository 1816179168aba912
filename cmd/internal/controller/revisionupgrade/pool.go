package revisionupgrade

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/api/v1alpha1"
	"github.com/godwit-dev/godwit/revision"
)

// triggerSpecs are the specs of the triggers that are not being deleted, by UID.
type triggerSpecs map[types.UID]v1alpha1.ControllerRevisionUpgradeTriggerSpec

// defaultMaxConcurrent bounds the upgrades that are written at once, unless a trigger has another bound.
const defaultMaxConcurrent = 10

// maxConcurrent returns the bound of a trigger.
func maxConcurrent(spec v1alpha1.ControllerRevisionUpgradeTriggerSpec) int {
	if spec.MaxConcurrent == nil {
		return defaultMaxConcurrent
	}
	return int(*spec.MaxConcurrent)
}

// lowestLimit returns the lowest bound of the triggers of these upgrades.
func lowestLimit(turn []*v1alpha1.ControllerRevisionUpgrade, triggers triggerSpecs) int {
	lowest := 0
	for _, one := range turn {
		if n := maxConcurrent(triggers[triggerOf(one).UID]); lowest == 0 || n < lowest {
			lowest = n
		}
	}
	return lowest
}

// upgraderPool has an Upgrader for each bound, which all namespaces share. The zero value is ready to use.
type upgraderPool struct {
	mu      sync.Mutex
	byLimit map[int]*revision.Upgrader
}

// limited returns the Upgrader that writes at most n revisions at once.
func (p *upgraderPool) limited(u *revision.Upgrader, n int) (*revision.Upgrader, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.byLimit[n]; known != nil {
		return known, nil
	}
	limited, err := u.WithMaxInFlight(n)
	if err != nil {
		return nil, err
	}
	if p.byLimit == nil {
		p.byLimit = map[int]*revision.Upgrader{}
	}
	p.byLimit[n] = limited
	return limited, nil
}
