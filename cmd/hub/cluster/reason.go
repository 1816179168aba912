package cluster

import "fmt"

// Reason is why a cluster can't be moved or returned.
type Reason string

// Reasons of failures.
const (
	// ReasonNotFound means that the hub has no such ManagedCluster.
	ReasonNotFound Reason = "ClusterNotFound"
	// ReasonExists means that the target hub has an object of the same name.
	ReasonExists Reason = "AlreadyExists"
	// ReasonBeingDeleted means that the ManagedCluster, or its namespace, is being deleted.
	ReasonBeingDeleted Reason = "BeingDeleted"
	// ReasonLocal means that the cluster is the hub itself.
	ReasonLocal Reason = "LocalCluster"
	// ReasonHosted means that the klusterlet runs on a hosting cluster, which stays at the
	// source hub.
	ReasonHosted Reason = "HostedKlusterlet"
	// ReasonUnavailable means that the cluster is not accepted, or not Available.
	ReasonUnavailable Reason = "ClusterUnavailable"
	// ReasonOtherMigration means that another migration has changed the object.
	ReasonOtherMigration Reason = "OtherMigration"
	// ReasonNoKlusterletWork means that the hub does not install the klusterlet by a
	// ManifestWork, so that it can't give it another bootstrap kubeconfig.
	ReasonNoKlusterletWork Reason = "NoKlusterletWork"
	// ReasonKindNotServed means that the hub has no CRD of a kind that is needed.
	ReasonKindNotServed Reason = "KindNotServed"
	// ReasonPlacement means that the Placement does not exist.
	ReasonPlacement Reason = "PlacementNotFound"
	// ReasonForeignObject means that an object has a name that the migration needs, and does
	// not belong to it.
	ReasonForeignObject Reason = "ForeignObject"
	// ReasonTooManyRequests means that a cluster has so many CertificateSigningRequests that
	// its agent makes no further one.
	ReasonTooManyRequests Reason = "TooManySigningRequests"
	// ReasonDenied means that the hub denies the CertificateSigningRequest of the cluster.
	ReasonDenied Reason = "SigningRequestDenied"
	// ReasonRefusedObject means that an object is not in the rules of what may be moved.
	ReasonRefusedObject Reason = "ObjectRefused"
	// ReasonAPI means that the API server refuses a request.
	ReasonAPI Reason = "RequestRefused"
	// ReasonNotPrepared means that an earlier step was not done for the cluster.
	ReasonNotPrepared Reason = "NotPrepared"
	// ReasonNoRole means that the hub has no ClusterRole by which a cluster registers.
	ReasonNoRole Reason = "BootstrapRoleNotFound"
	// ReasonTooLarge means that an object does not fit into a message.
	ReasonTooLarge Reason = "ObjectTooLarge"
	// ReasonTimeout means that the action was not done for the cluster before its command
	// ended. The message has what the cluster was waiting for.
	ReasonTimeout Reason = "NotInTime"
	// ReasonNotArrived means that the target hub has not got all objects of the cluster.
	ReasonNotArrived Reason = "ObjectsNotArrived"
	// ReasonKey means that the hub can't open a secret that was sealed to it, or can't seal one
	// to the other hub.
	ReasonKey Reason = "SealingKeyUnknown"
	// ReasonNewerFormat means that a newer release of Godwit has stored what a migration has changed.
	ReasonNewerFormat Reason = "NewerFormat"
	// ReasonUnknownAction means that the agent is older than the manager.
	ReasonUnknownAction Reason = "ActionUnknown"
)

// Error is an error that repetition does not fix. Its message says what to do.
type Error struct {
	Reason  Reason
	Message string
}

func (e *Error) Error() string { return string(e.Reason) + ": " + e.Message }

// Fail makes an [Error].
func Fail(reason Reason, format string, args ...any) error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
