package message

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
)

// SourceBundle is a command to the source hub.
type SourceBundle struct {
	Command         hub.Command `json:"command"`
	ToHub           string      `json:"toHub"`
	PlacementName   string      `json:"placementName,omitempty"`
	ManagedClusters []string    `json:"managedClusters,omitempty"`
	// BootstrapSecret is the kubeconfig of the target hub, sealed to the source.
	BootstrapSecret Sealed    `json:"bootstrapSecret,omitempty"`
	RollbackStage   api.Phase `json:"rollbackStage,omitempty"`
	// TargetSealingKey is what resources are sealed to, of the target's reports.
	TargetSealingKey []byte `json:"targetSealingKey,omitempty"`
	// ReconnectTimeoutSeconds is how long a klusterlet tries to reach a hub before it tries the
	// other one.
	ReconnectTimeoutSeconds int64 `json:"reconnectTimeoutSeconds,omitempty"`
	// Missing is what the target has not got of the resources, as its report names it. It
	// comes with the command of SendResources, sent again, and the source sends only this.
	Missing []Gap `json:"missing,omitempty"`
}

// TargetBundle is a command to the target hub.
type TargetBundle struct {
	Command                   hub.Command `json:"command"`
	FromHub                   string      `json:"fromHub"`
	ManagedServiceAccountName string      `json:"managedServiceAccountName,omitempty"`
	InstallNamespace          string      `json:"installNamespace,omitempty"`
	ManagedClusters           []string    `json:"managedClusters,omitempty"`
	RollbackStage             api.Phase   `json:"rollbackStage,omitempty"`
	// ReconnectTimeoutSeconds is how long a klusterlet tries to reach a hub before it tries the
	// other one.
	ReconnectTimeoutSeconds int64 `json:"reconnectTimeoutSeconds,omitempty"`
	// RegisteringTimeoutSeconds is how long the agent waits for registrations.
	RegisteringTimeoutSeconds int64 `json:"registeringTimeoutSeconds,omitempty"`
	// SourceIdentity signs the resource bundles.
	SourceIdentity []byte `json:"sourceIdentity,omitempty"`
	// SourceSealingKey is what a kubeconfig that the target issues is sealed to.
	SourceSealingKey []byte `json:"sourceSealingKey,omitempty"`
	// Bootstrap asks the target to issue the bootstrap kubeconfig with GrantRegistration. It is
	// nil if the manager has the token of a ManagedServiceAccount.
	Bootstrap *BootstrapRequest `json:"bootstrap,omitempty"`
}

// BootstrapRequest is what a target has to know for a kubeconfig by which clusters register.
type BootstrapRequest struct {
	// Server is the address by which managed clusters reach the target hub.
	Server string `json:"server"`
	// CABundle is what verifies the server, in PEM; empty if the roots of a klusterlet do.
	CABundle []byte `json:"caBundle,omitempty"`
	// TokenLifetimeSeconds is how long the token must be valid at least: the longest time that the
	// migration takes with its rollback.
	TokenLifetimeSeconds int64 `json:"tokenLifetimeSeconds"`
}

// StatusBundle is a report of an agent.
type StatusBundle struct {
	Finished bool `json:"finished"`
	// ErrMessage is the text of a failure, and ErrReason its reason.
	ErrMessage      string   `json:"errMessage,omitempty"`
	ErrReason       string   `json:"errReason,omitempty"`
	ManagedClusters []string `json:"managedClusters,omitempty"`
	// ClusterErrors are the texts of failures by cluster, and ClusterReasons their reasons.
	ClusterErrors  map[string]string `json:"clusterErrors,omitempty"`
	ClusterReasons map[string]string `json:"clusterReasons,omitempty"`
	FailedClusters []string          `json:"failedClusters,omitempty"`
	// Done are the clusters that have reached what the command is for.
	Done []string `json:"done,omitempty"`
	// SealingKey of the hub, in every report until the hub needs to open nothing more.
	SealingKey []byte `json:"sealingKey,omitempty"`
	// BootstrapSecret is the kubeconfig that the target has issued, sealed to the source, in the
	// final report on GrantRegistration.
	BootstrapSecret Sealed `json:"bootstrapSecret,omitempty"`
	// Missing are the objects of resource bundles that did not arrive, in a report that is not
	// final. The manager sends them to the source, with the same command as before.
	Missing []Gap `json:"missing,omitempty"`
}

// Heartbeat says that an agent is there. Its age counts from its receipt.
type Heartbeat struct {
	Hub string `json:"hub"`
	// Versions of the envelope that the agent reads.
	Versions []int `json:"versions"`
}

// ResourceBundle has objects of clusters, all that there are or some.
type ResourceBundle struct {
	TotalClusters             int                `json:"totalClusters"`
	MigrationClusterResources []ClusterResources `json:"migrationClusterResources"`
}

// ClusterResources are objects of a cluster: all, or from one index on those that fit.
type ClusterResources struct {
	ClusterName  string            `json:"clusterName"`
	ResourceList []json.RawMessage `json:"resourceList"`
	// SourceKubeconfig comes with the first object; see [Resources].
	SourceKubeconfig []byte `json:"sourceKubeconfig,omitempty"`
	// First is the index of the first of them, Objects the number of all objects of the
	// cluster, and Hash that of all [Resources].
	First   int    `json:"first"`
	Objects int    `json:"objects"`
	Hash    string `json:"hash"`
}

// Gap names objects of a cluster that did not arrive. Without a number of objects, nothing
// of the cluster did.
type Gap struct {
	ClusterName string `json:"clusterName"`
	First       int    `json:"first"`
	Objects     int    `json:"objects,omitempty"`
}

// Report is what the manager's protocol makes of a status.
func (b StatusBundle) Report(h Header, p hub.Party, now time.Time) hub.Report {
	r := hub.Report{
		At: now, Party: p, Stage: h.Stage, Attempt: h.Attempt, Finished: b.Finished,
		Error: hub.ReadFailure(b.ErrReason, b.ErrMessage), Clusters: b.ManagedClusters, Done: b.Done,
		ClusterErrors: hub.ReadFailures(b.ClusterErrors, b.ClusterReasons),
	}
	for _, name := range b.FailedClusters {
		if _, ok := r.ClusterErrors[name]; ok {
			continue
		}
		if r.ClusterErrors == nil {
			r.ClusterErrors = map[string]hub.Failure{}
		}
		r.ClusterErrors[name] = hub.Failure{Message: "the hub reports that the cluster failed, and not why"}
	}
	return r
}

// Encode writes the data of a bundle.
func Encode(bundle any) ([]byte, error) { return encode(bundle) }

// Decode reads the data of a bundle. Fields of later versions are ignored.
func Decode[B SourceBundle | TargetBundle | StatusBundle | ResourceBundle | Heartbeat](data []byte) (B, error) {
	var b B
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&b); err != nil {
		return b, fmt.Errorf("decode a bundle: %w", err)
	}
	return b, nil
}
