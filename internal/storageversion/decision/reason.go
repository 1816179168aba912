package decision

import (
	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/placeholder"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// Reasons are those of a plan, of objects that fail, and of an [UnlistedError].
var Reasons godwit.Catalog

// Reasons of blockers.
var (
	ReasonNotEstablished = Reasons.Declare(godwit.Reason{
		Name: "NotEstablished", UserAction: true,
		Meaning: "The API server does not serve the CRD.",
		Fix:     waitEstablished(placeholder.Name).Or(freeNames(placeholder.CRD())),
	})
	ReasonTerminating = Reasons.Declare(godwit.Reason{
		Name:    "Terminating",
		Meaning: "The CRD is being deleted.",
		Fix:     seeDeletion(placeholder.Name),
	})
	ReasonNoStorageVersion = Reasons.Declare(godwit.Reason{
		Name: "NoStorageVersion", UserAction: true,
		Meaning: "No version of the CRD is marked as the storage version.",
		Fix:     markStorageVersion(placeholder.Name),
	})
	ReasonStorageVersionNotServed = Reasons.Declare(godwit.Reason{
		Name: "StorageVersionNotServed", UserAction: true,
		Meaning: "The storage version is not served. Objects can't be written at it, and a write through another version can lose fields.",
		Fix:     Serve(placeholder.CRD(), placeholder.Version),
	})
	ReasonStatusSubresourceMissing = Reasons.Declare(godwit.Reason{
		Name: "StatusSubresourceMissing", UserAction: true,
		Meaning: "The chosen write goes to /status, and the storage version has no status subresource.",
		Fix:     writeObject(placeholder.Name, WritePatch, placeholder.Version),
	})
	ReasonStoredVersionNotInSpec = Reasons.Declare(godwit.Reason{
		Name: "StoredVersionNotInSpec", UserAction: true,
		Meaning: "status.storedVersions names a version that spec.versions lacks. The API server can't read objects that are stored at it.",
		Fix:     restoreVersion(placeholder.CRD(), placeholder.Version),
	})
	ReasonForbidden = Reasons.Declare(godwit.Reason{
		Name: "Forbidden", UserAction: true,
		Meaning: "A permission is missing.",
		Fix:     placeGrant.Fix(placeholder.User),
	})
	ReasonMigrationInProgress = Reasons.Declare(godwit.Reason{
		Name:    "MigrationInProgress",
		Meaning: "Another migrator is at work on the resource.",
		Fix:     deleteMigration("MIGRATION").Or(awaitMigration("MIGRATION")),
	})
	ReasonCRDKeepsChanging = Reasons.Declare(godwit.Reason{
		Name: "CRDKeepsChanging", UserAction: true,
		Meaning: "The spec of the CRD changed during several runs.",
		Fix:     agree(placeholder.Name, evidence.CheckpointAnnotation).Or(agree(placeholder.Name, "")),
	})
	ReasonServerLeaseStale = Reasons.Declare(godwit.Reason{
		Name: "ServerLeaseStale", UserAction: true,
		Meaning: "An API server lease is stale. The server may still write the old version.",
		Fix:     replaceServer("SERVER", "DURATION"),
	})
	ReasonNoLeaseRenewed = Reasons.Declare(godwit.Reason{
		Name: "NoLeaseRenewed", UserAction: true,
		Meaning: "No API server renews its identity lease, although one answers: etcd stores nothing, for example because it is full, or the API servers have just started.",
		Fix:     seeEtcdWrites(),
	})
	ReasonServersWithoutLease = Reasons.Declare(godwit.Reason{
		Name: "ServersWithoutLease", UserAction: true,
		Meaning: "The service kubernetes has more endpoints than API servers have identity leases. Whether each API server uses the storage version is not known.",
		Fix:     giveOwnLeases(),
	})
	ReasonAdmissionDenied = Reasons.Declare(godwit.Reason{
		Name: "AdmissionDenied", UserAction: true,
		Meaning: "A webhook or a policy denies the write of some object, as the preflight shows.",
		Fix:     WriteStatus(placeholder.Name).Or(TryStatus(placeholder.Name, placeholder.Resource), FindAndExempt(placeholder.User, "ORIGIN", godwit.Edit{Object: godwit.Object{Resource: placeholder.Resource, Name: placeholder.Name}}), LeaveBehind(placeholder.Name, "")),
	})
	ReasonWebhookUnavailable = Reasons.Declare(godwit.Reason{
		Name: "WebhookUnavailable", UserAction: true,
		Meaning: "A webhook that the API server needs to read or write objects does not answer.",
		Fix: putBack(conversionWebhook(placeholder.CRD()).bringUp(placeholder.Name), placeholder.Name, placeholder.Version, placeholder.Version).Then(planAgain, godwit.PlanMigration{CRD: placeholder.Name}).
			Or(WriteStatus(placeholder.Name), TryStatus(placeholder.Name, placeholder.Resource), LeaveBehind(placeholder.Name, "")),
	})
	ReasonConversionFailed = Reasons.Declare(godwit.Reason{
		Name: "ConversionFailed", UserAction: true,
		Meaning: "The conversion webhook answers, and does not convert some object. The API server lists no object until it does.",
		Fix:     putBack(conversionWebhook(placeholder.CRD()).fix(placeholder.Name), placeholder.Name, placeholder.Version, placeholder.Version).Then(planAgain, godwit.PlanMigration{CRD: placeholder.Name}),
	})
	ReasonUnreadableObjects = Reasons.Declare(godwit.Reason{
		Name: "UnreadableObjects", UserAction: true,
		Meaning: "The API server can't read some object from etcd: its bytes are damaged, or its version is not in spec.versions.",
		Fix:     rescueObjects(placeholder.Name).Or(putBack(addVersion(placeholder.CRD(), placeholder.Version), placeholder.Name, placeholder.Version, placeholder.Version), RestoreObject(placeholder.Name)),
	})
	ReasonOtherScope = Reasons.Declare(godwit.Reason{
		Name: "OtherScope", UserAction: true,
		Meaning: "Etcd has objects of the CRD of another scope than that of the CRD: it was deleted without its finalizer, and created again with another scope. No request reaches them.",
		Fix:     deleteKeys(placeholder.CRD()),
	})
	ReasonEncryptionKeyMissing = Reasons.Declare(godwit.Reason{
		Name: "EncryptionKeyMissing", UserAction: true,
		Meaning: "The API server lacks the key with which some object in etcd is encrypted: the key was removed from the encryption configuration too early.",
		Fix:     PutKeyBack(placeholder.Resource),
	})
	ReasonObjectInvalid = Reasons.Declare(godwit.Reason{
		Name: "ObjectInvalid", UserAction: true,
		Meaning: "The API server refuses some object as it is stored.",
		Fix:     EditObject(placeholder.Object()).Or(LeaveBehind(placeholder.Name, "")),
	})
	ReasonNewerFormat = format.DeclareNewer(&Reasons, "has stored how far a migration of the CRD is",
		"Nothing is written.", format.UseNewerRelease().Or(removeCheckpoint(placeholder.Name, evidence.CheckpointAnnotation)))
	ReasonFieldsWouldBeLost = Reasons.Declare(godwit.Reason{
		Name: "FieldsWouldBeLost", UserAction: true,
		Meaning: "The storage version drops values that objects have at an old version: its schema lacks their fields, or the conversion webhook loses them. The run is refused, and nothing is written.",
		Fix:     keepValues(placeholder.Name, "PATH"),
	})
	ReasonFieldsMayBeLost = Reasons.Declare(godwit.Reason{
		Name: "FieldsMayBeLost", UserAction: true,
		Meaning: "The schemas do not show that the storage version keeps each value of the objects, and the objects could not be tried: their version is not served, or the API server did not answer for some of them. Nothing is written.",
		Fix:     serveToTry(placeholder.CRD(), placeholder.Version).Or(ProveFromEtcd(placeholder.Name), tryAgain(placeholder.Name), giveUp(placeholder.Name, values.EveryPath)),
	})
	ReasonAcceptedPathUnknown = Reasons.Declare(godwit.Reason{
		Name: "AcceptedPathUnknown", UserAction: true,
		Meaning: "The user gives up values at a path at which no value can be lost. Nothing is written, since the path may be misspelled.",
		Fix:     correctPaths(placeholder.Name),
	})
	ReasonOtherServerAnswers = Reasons.Declare(godwit.Reason{
		Name: "OtherServerAnswers", UserAction: true,
		Meaning: "An APIService forwards requests for the objects of the CRD to another server. What that server lists proves nothing about the objects of the CRD in etcd.",
		Fix:     removeAPIService("VERSION.GROUP"),
	})
	ReasonRescueInterrupted = Reasons.Declare(godwit.Reason{
		Name: "RescueInterrupted", UserAction: true,
		Meaning: "A rescue of the CRD is under way or was interrupted. Until it ends, the CRD has versions that only the rescue needs, and no other run writes its objects.",
		Fix:     resumeRescue(placeholder.Name),
	})
)

// Reasons of warnings, beside those of blockers that are accepted.
var (
	ReasonStoredVersionsDoubtful = Reasons.Declare(godwit.Reason{
		Name: "StoredVersionsDoubtful", UserAction: true,
		Meaning: "A version is removed, and status.storedVersions proves nothing: it lacks the storage version, or a migration that failed trimmed it.",
		Fix:     MigrateDoubtful(placeholder.Name).Or(ProveFromEtcd(placeholder.Name)),
	})
	ReasonMigrationDidNotTrim = Reasons.Declare(godwit.Reason{
		Name:    "MigrationDidNotTrim",
		Meaning: "A StorageVersionMigration of another migrator succeeded, and left old versions in status.storedVersions.",
		Fix:     migrateUntrimmed(placeholder.Name),
	})
	ReasonTrimmedBeforeSettled = Reasons.Declare(godwit.Reason{
		Name: "TrimmedBeforeSettled", UserAction: true,
		Meaning: "Kubernetes' own migrator trimmed status.storedVersions so soon after the change of the CRD that an API server may have stored an old version since.",
		Fix:     proveTrimmed(placeholder.Name, placeholder.Version),
	})
	ReasonNoIdentityLeases = Reasons.Declare(godwit.Reason{
		Name:    "NoIdentityLeases",
		Meaning: "The API servers have no identity leases. One that does not store the new version yet can't be found, and only the settle time protects objects from it.",
		Fix:     seeServersHealthy(),
	})
	ReasonAdmissionMutates = Reasons.Declare(godwit.Reason{
		Name: "AdmissionMutates", UserAction: true,
		Meaning: "Admission changes objects that are written as they are. A run would store the change, and is refused unless the user accepts it.",
		Fix:     WriteStatus(placeholder.Name).Or(TryStatus(placeholder.Name, placeholder.Resource), FindAndExempt(placeholder.User, "ORIGIN", godwit.Edit{Object: godwit.Object{Resource: placeholder.Resource, Name: placeholder.Name}}), AcceptMutation(placeholder.Name, "", "PATH")),
	})
	ReasonCleanupForbidden = Reasons.Declare(godwit.Reason{
		Name:    "CleanupForbidden",
		Meaning: "The permission to patch objects is missing, which the cleanup of managedFields needs.",
		Fix:     placeGrant.Fix(placeholder.User),
	})
	ReasonAnnotationsFull = Reasons.Declare(godwit.Reason{
		Name:    "AnnotationsFull",
		Meaning: "The annotations of the CRD leave no room for a checkpoint. A run needs none; if it is interrupted, the next one begins again.",
		Fix:     dropAnnotation(placeholder.Name, "ANNOTATION"),
	})
	ReasonPreflightIncomplete = Reasons.Declare(godwit.Reason{
		Name:    "PreflightIncomplete",
		Meaning: "The preflight did not try the write in every namespace.",
		Fix:     PlanAgain(placeholder.Name).Or(TryEveryObject(placeholder.Name, ""), DeclareNoSideEffects()),
	})
)

// Reasons of what ends a run at once, because each other request would fail in the same way.
var (
	ReasonUnauthorized = Reasons.Declare(godwit.Reason{
		Name: "Unauthorized", UserAction: true,
		Meaning: "The API server does not accept the credentials: they are expired or wrong. The run ended with the first such answer, and no object is to blame.",
		Fix:     RenewCredentials(),
	})
	ReasonEtcdFull = Reasons.Declare(godwit.Reason{
		Name: "EtcdFull", UserAction: true,
		Meaning: "etcd is out of space, and stores nothing until space is freed. The run ended with the first such answer, and no object is to blame.",
		Fix:     freeEtcd(),
	})
)

// Reasons of failures of objects, beside those of blockers and of an [UnlistedError].
var (
	ReasonConflict = Reasons.Declare(godwit.Reason{
		Name:    "Conflict",
		Meaning: "Other clients kept writing the object while it was rewritten.",
		Fix:     godwit.Do("run again. If it lasts, see in metadata.managedFields which clients write the object"),
	})
	ReasonUnanswered = Reasons.Declare(godwit.Reason{
		Name:    "Unanswered",
		Meaning: "The API server did not answer the write of an object.",
		Fix:     godwit.Do("run again when the API server answers: `kubectl get --raw '/readyz?verbose'`"),
	})
	ReasonObjectTooLarge = Reasons.Declare(godwit.Reason{
		Name: "ObjectTooLarge", UserAction: true,
		Meaning: "An object is too large: etcd or the API server refuses to store it. Or the API server dropped its managedFields, because the object is too large with them or, before Kubernetes 1.37, because its conversion webhook was down.",
		Fix: godwit.Do("if the write was refused, make the object smaller, or raise --max-request-bytes of etcd; then run again").
			Or(godwit.Do("if managedFields were dropped, have each client that applies the object apply it again: it owns no field of the object any more")),
	})
	ReasonManagedFieldsKept = Reasons.Declare(godwit.Reason{
		Name: "ManagedFieldsKept", UserAction: true,
		Meaning: "The API server answered a cleanup of managedFields with the entries of before.",
		Fix:     godwit.Do("see whether a mutating webhook writes metadata.managedFields"),
	})
)

// Reasons of an [UnlistedError], beside [ReasonForbidden], [ReasonNotEstablished],
// [ReasonStorageVersionNotServed] and those of blockers.
var (
	ReasonNotServed = Reasons.Declare(godwit.Reason{
		Name: "NotServed", UserAction: true,
		Meaning: "The API server answers 404 for a version that the CRD serves.",
		Fix:     seeAPIService("VERSION.GROUP").Then(planAgain, godwit.PlanMigration{CRD: placeholder.Name}),
	})
	ReasonThrottled = Reasons.Declare(godwit.Reason{
		Name:    "Throttled",
		Meaning: "The API server answers 429 to each attempt.",
		Fix:     awaitLessLoad().Then(planAgain, godwit.PlanMigration{CRD: placeholder.Name}),
	})
	ReasonServerError = Reasons.Declare(godwit.Reason{
		Name:    "ServerError",
		Meaning: "The API server, or a proxy before it, answers with a 5xx error to each attempt.",
		Fix:     seeReadiness().Then(planAgain, godwit.PlanMigration{CRD: placeholder.Name}),
	})
	ReasonTimeout = Reasons.Declare(godwit.Reason{
		Name:    "Timeout",
		Meaning: "The API server does not list one object within 10 s.",
		Fix:     seeLoad().Or(conversionWebhook(placeholder.CRD()).bringUp(placeholder.Name)).Then(planAgain, godwit.PlanMigration{CRD: placeholder.Name}),
	})
	ReasonListRefused = Reasons.Declare(godwit.Reason{
		Name: "ListRefused", UserAction: true,
		Meaning: "The API server, or a proxy before it, refuses the list for another reason.",
		Fix:     seeRefusal("PATH").Then(planAgain, godwit.PlanMigration{CRD: placeholder.Name}),
	})
)

// StepReasons are those of a [Step], and of the conditions of a CRDMigration.
var StepReasons godwit.Catalog

// Reasons of a [Step].
var (
	ReasonSucceeded = StepReasons.Declare(godwit.Reason{
		Name:    "Succeeded",
		Meaning: "Every object is stored at the storage version, and status.storedVersions of the CRD has no other.",
		Fix:     godwit.Do("nothing: the old versions can be removed from the CRD"),
	})
	ReasonNotTrimmed = StepReasons.Declare(godwit.Reason{
		Name:    "NotTrimmed",
		Meaning: "Nothing is left to do. The old versions stay in status.storedVersions, as spec.trim asks for, or spec.phases without the rewrite.",
		Fix:     godwit.Do("set `spec.trim` to true to have them removed"),
	})
	ReasonSettling = StepReasons.Declare(godwit.Reason{
		Name:    "Settling",
		Meaning: "API servers may still write the old version.",
		Fix:     godwit.Do("wait. If the event is a Warning, an API server lease is stale: bring the server back, or delete its lease if it is gone for good"),
	})
	ReasonRetrying = StepReasons.Declare(godwit.Reason{
		Name:    "Retrying",
		Meaning: "A pass left objects behind. Another one follows.",
		Fix:     godwit.Do("wait"),
	})
	ReasonBlocked = StepReasons.Declare(godwit.Reason{
		Name: "Blocked", UserAction: true,
		Meaning: "Something keeps the migration from starting. The condition Blocked has the reason, and `status.blockers` has all of them.",
		Fix:     godwit.Do("do what the remedies in `status.blockers` say"),
	})
	ReasonObjectsUnlisted = StepReasons.Declare(godwit.Reason{
		Name:    "ObjectsUnlisted",
		Meaning: "The API server does not list the objects now, for a reason that may end without a user's action. Nothing is known about them.",
		Fix:     godwit.Do("wait: the list is retried. If it lasts, do what the message says"),
	})
	ReasonObjectsFailed = StepReasons.Declare(godwit.Reason{
		Name: "ObjectsFailed", UserAction: true,
		Meaning: "The API server refuses to write some objects.",
		Fix:     godwit.Do("see `status.failures` for the objects, and correct what the API server's answer names"),
	})
	ReasonNotConverging = StepReasons.Declare(godwit.Reason{
		Name: "NotConverging", UserAction: true,
		Meaning: "Other clients kept changing objects for several passes.",
		Fix:     godwit.Do("see which clients write the objects that failed, and stop them for the time of the migration"),
	})
	ReasonPartial = StepReasons.Declare(godwit.Reason{
		Name: "Partial", UserAction: true,
		Meaning: "Every object is stored at the storage version, and some managedFields could not be cleaned.",
		Fix:     godwit.Do("see `status.failures` for the objects and for what the API server answers"),
	})
	ReasonCRDNotFound = StepReasons.Declare(godwit.Reason{
		Name: "CRDNotFound", UserAction: true,
		Meaning: "The CRD that the CRDMigration names does not exist.",
		Fix:     godwit.Do("correct the name, or install the CRD"),
	})
	ReasonFailed = StepReasons.Declare(godwit.Reason{
		Name:    "Failed",
		Meaning: "A pass could not be made.",
		Fix:     godwit.Do("see the message. The manager retries; if it lasts, remove the cause that the message names"),
	})
)
