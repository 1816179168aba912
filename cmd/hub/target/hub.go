package target

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// Hub is the target hub in one migration.
type Hub struct {
	cluster.Hub
	// Account is the ServiceAccount with whose token clusters register. Migrations between the same hubs share it.
	Account types.NamespacedName
	// OtherNamespace means that the account is not in the namespace of the agent, which may have no permission for it.
	OtherNamespace bool
	// Reconnect is how long an agent tries to reach a hub before it tries the other one.
	Reconnect time.Duration
	// Returns means that clusters return to this hub, without an import controller that would approve them. They have joined it before.
	Returns bool
	// Adopts means that the label of the migration is enough for a ManagedCluster, which any client may have created. None is deleted then.
	Adopts bool
	// Identities has the claim [cluster.ClaimID] of clusters at the source hub, as far as it is known. An agent with a manager does not
	// know it before the resources of the clusters arrive.
	Identities map[string]string
	// Denied is called with the CertificateSigningRequests of the account that the migration has denied, each with the reason. Nil means no call.
	Denied func(requests []string)
	// Issued is called with the expiry of the certificate that a cluster has got by the migration, from several goroutines. Nil means no call.
	Issued func(cluster string, expiry time.Time)
}
