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
	// TargetSealingKey is the key to which resources are sealed. The target reports it.
	TargetSealingKey []byte `json:"targetSealingKey,omitempty"`
	// ReconnectTimeoutSeconds is how long a klusterlet tries to reach a hub before it tries the
	// other one.
	ReconnectTimeoutSeconds int64 `json:"reconnectTimeoutSeconds,omitempty"`
	// EvictedWorks and UserObjects are the choices of the user for what the move would destroy. A manager that does not know
	// them sends none, and the source checks nothing.
	EvictedWorks api.EvictedWorksPolicy `json:"evictedWorks,omitempty"`
	UserObjects  api.UserObjectsPolicy  `json:"userObjects,omitempty"`
	// Missing are the resources that the target reports as missing. The manager repeats the command of SendResources
	// with it, and the source sends only these.
	Missing []Gap `json:"missing,omitempty"`
}

// TargetBundle is a command to the target hub.
type TargetBundle struct {
	Command                   hub.Command `json:"command"`
	FromHub                   string      `json:"fromHub"`
	ManagedServiceAccountName string      `json:"managedServiceAccountName,omitempty"`
	InstallNamespace          string      `json:"installNamespace,omitempty"`
	// OwnAccount means that the agent of the target makes the bootstrap account in its own namespace, instead of InstallNamespace.
	OwnAccount      bool      `json:"ownAccount,omitempty"`
	ManagedClusters []string  `json:"managedClusters,omitempty"`
	RollbackStage   api.Phase `json:"rollbackStage,omitempty"`
	// ReconnectTimeoutSeconds is how long a klusterlet tries to reach a hub before it tries the
	// other one.
	ReconnectTimeoutSeconds int64 `json:"reconnectTimeoutSeconds,omitempty"`
	// RegisteringTimeoutSeconds is how long the agent waits for registrations.
	RegisteringTimeoutSeconds int64 `json:"registeringTimeoutSeconds,omitempty"`
	// UserObjects is Move if the source sends objects of users that no other rule moves.
	UserObjects api.UserObjectsPolicy `json:"userObjects,omitempty"`
	// SourceIdentity signs the resource bundles.
	SourceIdentity []byte `json:"sourceIdentity,omitempty"`
	// SourceKeyNumber counts the keys of the source hub. A target that has the command already takes another SourceIdentity
	// only with a higher number: the broker may send a command of before again.
	SourceKeyNumber int32 `json:"sourceKeyNumber,omitempty"`
	// SourceSealingKey is the key to which the target seals the kubeconfig that it issues.
	SourceSealingKey []byte `json:"sourceSealingKey,omitempty"`
	// Bootstrap requests that the target issues the bootstrap kubeconfig with GrantRegistration. It is nil if the
	// manager has the token of a ManagedServiceAccount.
	Bootstrap *BootstrapRequest `json:"bootstrap,omitempty"`
}

// BootstrapRequest is what a target needs to issue the bootstrap kubeconfig.
type BootstrapRequest struct {
	// Server is the address at which managed clusters reach the target hub.
	Server string `json:"server"`
	// CABundle has the CA certificates of the server, in PEM; empty if the klusterlet's system roots verify it.
	CABundle []byte `json:"caBundle,omitempty"`
	// TokenLifetimeSeconds is the least lifetime of the token: the longest time that the migration takes with its
	// rollback.
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
	// Done are the clusters for which the command is done.
	Done []string `json:"done,omitempty"`
	// Gone has, for clusters in Done, what the agent did not find any more.
	Gone map[string]string `json:"gone,omitempty"`
	// Certificates have, by cluster, when the certificate expires that the target has issued, also for clusters that stay there.
	Certificates map[string]time.Time `json:"certificates,omitempty"`
	// Warnings are what may keep clusters from the end of the migration, in the report on ValidateSource.
	Warnings []hub.Warning `json:"warnings,omitempty"`
	// DeniedRequests are CertificateSigningRequests of the bootstrap account that the agent has denied, each with the reason.
	DeniedRequests []string `json:"deniedRequests,omitempty"`
	// SealingKey is the sealing key of the hub. Every report has it until the hub needs to open nothing more.
	SealingKey []byte `json:"sealingKey,omitempty"`
	// BootstrapSecret is the kubeconfig that the target has issued, sealed to the source, in the
	// final report on GrantRegistration.
	BootstrapSecret Sealed `json:"bootstrapSecret,omitempty"`
	// Missing are the objects that did not arrive, in a report that is not final. The manager passes them to the
	// source, with the same command as before.
	Missing []Gap `json:"missing,omitempty"`
}

// Heartbeat shows that an agent runs. Its age counts from its receipt.
type Heartbeat struct {
	Hub string `json:"hub"`
	// Versions of the envelope that the agent reads.
	Versions []int `json:"versions"`
}

// ResourceBundle has all or some objects of clusters.
type ResourceBundle struct {
	TotalClusters             int                `json:"totalClusters"`
	MigrationClusterResources []ClusterResources `json:"migrationClusterResources"`
}

// ClusterResources are objects of a cluster: all, or a range of them.
type ClusterResources struct {
	ClusterName  string            `json:"clusterName"`
	ResourceList []json.RawMessage `json:"resourceList"`
	// SourceKubeconfig is set in the part with the first object; see [Resources].
	SourceKubeconfig []byte `json:"sourceKubeconfig,omitempty"`
	// First is the index of the first object in the list, Objects is the number of all objects of the cluster, and Hash
	// is the hash of its [Resources].
	First   int    `json:"first"`
	Objects int    `json:"objects"`
	Hash    string `json:"hash"`
}

// Gap is a range of objects of a cluster that did not arrive. If Objects is zero, no object of the cluster arrived.
type Gap struct {
	ClusterName string `json:"clusterName"`
	First       int    `json:"first"`
	Objects     int    `json:"objects,omitempty"`
}

// Report converts the bundle to an event of the protocol.
func (b StatusBundle) Report(h Header, p hub.Party, now time.Time) hub.Report {
	r := hub.Report{
		At: now, Party: p, Stage: h.Stage, Attempt: h.Attempt, Finished: b.Finished,
		Error: hub.ReadFailure(b.ErrReason, b.ErrMessage), Clusters: b.ManagedClusters, Done: b.Done, Gone: b.Gone,
		Certificates: b.Certificates, DeniedRequests: b.DeniedRequests, Warnings: b.Warnings,
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

// Encode returns the JSON of a bundle.
func Encode(bundle any) ([]byte, error) { return encode(bundle) }

// Decode parses the JSON of a bundle. It ignores unknown fields, which later versions may add.
func Decode[B SourceBundle | TargetBundle | StatusBundle | ResourceBundle | Heartbeat](data []byte) (B, error) {
	var b B
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&b); err != nil {
		return b, fmt.Errorf("decode a bundle: %w", err)
	}
	return b, nil
}
