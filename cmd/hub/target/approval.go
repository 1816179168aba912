package target

import (
	"encoding/json"
	"fmt"
	"slices"

	ocmfeature "open-cluster-management.io/api/feature"
	operatorv1 "open-cluster-management.io/api/operator/v1"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/internal/format"
)

// annotationApproval records what migrations of earlier releases have added to the ClusterManager. This release adds nothing, and removes
// what is recorded.
const annotationApproval = "godwit.dev/automatic-approval"

// approval records what migrations have added to the configuration of a ClusterManager, so that exactly this is removed.
type approval struct {
	// Users that were added, each with the UIDs of the migrations that need it.
	Users map[string][]string `json:"users,omitempty"`
	// Gate is the previous mode of the feature gate: nil if it was not changed, empty if it was not set.
	Gate *operatorv1.FeatureGateModeType `json:"gate,omitempty"`
	// Created means that the ClusterManager had no configuration of registration.
	Created bool `json:"created,omitempty"`
}

// storedApproval is the content of the annotation.
type storedApproval struct {
	Format int `json:"format"`
	approval
}

const gate = string(ocmfeature.ManagedClusterAutoApproval)

func approvalOf(m *operatorv1.ClusterManager) (approval, error) {
	var a approval
	text, ok := m.Annotations[annotationApproval]
	if !ok {
		return a, nil
	}
	if err := cluster.CheckFormat(m, annotationApproval); err != nil {
		return a, err
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return a, cluster.Fail(cluster.ReasonForeignObject, "annotation %s of ClusterManager %s can't be read: remove it", annotationApproval, m.Name)
	}
	return a, nil
}

// remove removes what the migration has added, unless another one needs it.
func (a *approval) remove(m *operatorv1.ClusterManager, user, migration string) {
	owners, added := a.Users[user]
	config := m.Spec.RegistrationConfiguration
	if !added || config == nil {
		return
	}
	owners = slices.DeleteFunc(owners, func(uid string) bool { return uid == migration })
	if len(owners) > 0 {
		a.Users[user] = owners
		return
	}
	delete(a.Users, user)
	config.AutoApproveUsers = slices.DeleteFunc(config.AutoApproveUsers, func(u string) bool { return u == user })
	if len(config.AutoApproveUsers) == 0 {
		config.AutoApproveUsers = nil
	}
	if len(a.Users) > 0 {
		return
	}
	a.restoreGate(config)
	if a.Created && len(config.AutoApproveUsers)+len(config.FeatureGates)+len(config.RegistrationDrivers) == 0 && config.ImporterConfiguration == nil {
		m.Spec.RegistrationConfiguration = nil
	}
}

func (a *approval) restoreGate(config *operatorv1.RegistrationHubConfiguration) {
	if a.Gate == nil {
		return
	}
	i := slices.IndexFunc(config.FeatureGates, func(g operatorv1.FeatureGate) bool { return g.Feature == gate })
	switch {
	case i < 0:
	case *a.Gate == "":
		config.FeatureGates = slices.Delete(config.FeatureGates, i, i+1)
	default:
		config.FeatureGates[i].Mode = *a.Gate
	}
	if len(config.FeatureGates) == 0 {
		config.FeatureGates = nil
	}
	a.Gate = nil
}

func (a *approval) save(m *operatorv1.ClusterManager) error {
	if len(a.Users) == 0 {
		delete(m.Annotations, annotationApproval)
		if len(m.Annotations) == 0 {
			m.Annotations = nil
		}
		return nil
	}
	text, err := json.Marshal(storedApproval{Format: format.Current, approval: *a})
	if err != nil {
		return fmt.Errorf("save what was added to ClusterManager %s: %w", m.Name, err)
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[annotationApproval] = string(text)
	return nil
}
