package direct

import (
	"encoding/json"
	"fmt"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// annotationAddress of a migration has how clusters reach the target hub, so that every process which continues it uses
// the same address.
const annotationAddress = "godwit.dev/target-address"

// KeepAddress writes how clusters reach the target hub into a new migration.
func KeepAddress(m *api.ManagedClusterMigration, address clusterv1.ClientConfig) error {
	text, err := json.Marshal(address)
	m.Annotations = map[string]string{annotationAddress: string(text)}
	return err
}

// AddressIn returns how clusters reach the target hub of a migration.
func AddressIn(m *api.ManagedClusterMigration) (address clusterv1.ClientConfig, err error) {
	if err := json.Unmarshal([]byte(m.Annotations[annotationAddress]), &address); err != nil {
		return address, fmt.Errorf("read the address of the target hub in annotation %s of migration %s: %w", annotationAddress, m.Name, err)
	}
	return address, nil
}
