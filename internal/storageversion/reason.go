package storageversion

// Reasons of blockers.
const (
	// ReasonNotEstablished means that the API server does not serve the CRD.
	ReasonNotEstablished = "NotEstablished"
	// ReasonTerminating means that the CRD is being deleted.
	ReasonTerminating = "Terminating"
	// ReasonNoStorageVersion means that no version is marked as the storage version.
	ReasonNoStorageVersion = "NoStorageVersion"
	// ReasonStorageVersionNotServed means that objects can't be written at the storage
	// version, and writing them through another one can lose fields.
	ReasonStorageVersionNotServed = "StorageVersionNotServed"
	// ReasonStatusSubresourceMissing means that the policy writes to /status, and the
	// storage version has none.
	ReasonStatusSubresourceMissing = "StatusSubresourceMissing"
	// ReasonStoredVersionNotInSpec means that objects may be stored at a version that
	// the server no longer knows how to read.
	ReasonStoredVersionNotInSpec = "StoredVersionNotInSpec"
	// ReasonForbidden means that a permission is missing.
	ReasonForbidden = "Forbidden"
	// ReasonMigrationInProgress means that another migrator migrates the resource.
	ReasonMigrationInProgress = "MigrationInProgress"
	// ReasonCRDKeepsChanging means that the CRD changed under several runs.
	ReasonCRDKeepsChanging = "CRDKeepsChanging"
	// ReasonServerLeaseStale means that an API server has not renewed its lease since
	// the storage version changed, and may still write the old one.
	ReasonServerLeaseStale = "ServerLeaseStale"
	// ReasonAdmissionDenied means that a webhook or a policy refuses the policy's write of
	// some object, as a preflight has shown.
	ReasonAdmissionDenied = "AdmissionDenied"
	// ReasonWebhookUnavailable means that a webhook without which the API server writes or
	// reads no object does not answer it.
	ReasonWebhookUnavailable = "WebhookUnavailable"
	// ReasonConversionFailed means that the conversion webhook answers, and does not convert
	// some object, so that the API server reads none.
	ReasonConversionFailed = "ConversionFailed"
	// ReasonUnreadableObjects means that the API server can't read some object from etcd,
	// because its bytes are damaged or its version is not in spec.versions.
	ReasonUnreadableObjects = "UnreadableObjects"
	// ReasonObjectInvalid means that the API server itself refuses some object as it is.
	ReasonObjectInvalid = "ObjectInvalid"
	// ReasonNewerFormat means that a newer release of Godwit has stored how far a migration is.
	ReasonNewerFormat = "NewerFormat"
	// ReasonRescueInterrupted means that a rescue of the CRD has not ended.
	ReasonRescueInterrupted = "RescueInterrupted"
)

// Reasons of warnings, beside those of blockers that are accepted.
const (
	// ReasonStoredVersionsDoubtful means that status.storedVersions proves nothing, because
	// a StorageVersionMigration that failed has trimmed it.
	ReasonStoredVersionsDoubtful = "StoredVersionsDoubtful"
	// ReasonMigrationDidNotTrim means that a StorageVersionMigration of another migrator has
	// succeeded, and that status.storedVersions still has old versions.
	ReasonMigrationDidNotTrim = "MigrationDidNotTrim"
	// ReasonTrimmedBeforeSettled means that Kubernetes' own migrator trimmed status.storedVersions
	// while an API server may still have stored an old version.
	ReasonTrimmedBeforeSettled = "TrimmedBeforeSettled"
	// ReasonNoIdentityLeases means that the API servers have no identity leases, so that
	// none that lags behind can be found.
	ReasonNoIdentityLeases = "NoIdentityLeases"
	// ReasonAdmissionMutates means that something in the API server changes objects that
	// are written as they are, and a run would store the change.
	ReasonAdmissionMutates = "AdmissionMutates"
	// ReasonCleanupForbidden means that the write goes to /status or is an update, and the
	// right to patch objects is missing, which the cleanup of managedFields needs.
	ReasonCleanupForbidden = "CleanupForbidden"
	// ReasonPreflightIncomplete means that what admission makes of the write is not
	// known for every namespace.
	ReasonPreflightIncomplete = "PreflightIncomplete"
)

// Reasons of failures of objects, beside those of blockers and of an [UnlistedError].
const (
	// ReasonConflict means that other clients kept writing the object.
	ReasonConflict = "Conflict"
	// ReasonUnanswered means that the API server did not answer the write.
	ReasonUnanswered = "Unanswered"
	// ReasonObjectTooLarge means that the API server dropped the managedFields of an
	// object that is too large with them.
	ReasonObjectTooLarge = "ObjectTooLarge"
	// ReasonManagedFieldsKept means that the API server answered a cleanup with the
	// managedFields of before.
	ReasonManagedFieldsKept = "ManagedFieldsKept"
)

// Reasons of an [UnlistedError], beside [ReasonForbidden], [ReasonNotEstablished],
// [ReasonStorageVersionNotServed] and those of blockers.
const (
	// ReasonNotServed means that the API server answers 404 for a version that the CRD serves.
	ReasonNotServed = "NotServed"
	// ReasonThrottled means that the API server answers 429 to each attempt.
	ReasonThrottled = "Throttled"
	// ReasonServerError means that the API server, or a proxy before it, answers with a 5xx
	// error to each attempt.
	ReasonServerError = "ServerError"
	// ReasonTimeout means that the API server does not list one object within 10 s.
	ReasonTimeout = "Timeout"
	// ReasonListRefused means that the API server, or a proxy before it, refuses the list for
	// another reason.
	ReasonListRefused = "ListRefused"
)

// Reasons of a [Step].
const (
	// ReasonSucceeded means that every object is stored at the storage version, and
	// that status.storedVersions says so.
	ReasonSucceeded = "Succeeded"
	// ReasonNotTrimmed means that nothing is left to do, and that the options leave
	// old versions in status.storedVersions.
	ReasonNotTrimmed = "NotTrimmed"
	// ReasonSettling means that API servers may still write an old version.
	ReasonSettling = "Settling"
	// ReasonRetrying means that another pass follows, for a cause that ends by itself.
	ReasonRetrying = "Retrying"
	// ReasonBlocked means that blockers keep the migration from starting.
	ReasonBlocked = "Blocked"
	// ReasonObjectsUnlisted means that the API server does not list the objects, for a
	// cause that may end by itself.
	ReasonObjectsUnlisted = "ObjectsUnlisted"
	// ReasonObjectsFailed means that the API server refuses to write some objects.
	ReasonObjectsFailed = "ObjectsFailed"
	// ReasonNotConverging means that other clients changed objects during each of
	// the last passes.
	ReasonNotConverging = "NotConverging"
	// ReasonPartial means that every object is stored at the storage version, and
	// that managedFields of some could not be cleaned.
	ReasonPartial = "Partial"
	// ReasonCRDNotFound means that there is no CRD of this name.
	ReasonCRDNotFound = "CRDNotFound"
	// ReasonFailed means that the pass could not be completed.
	ReasonFailed = "Failed"
)
