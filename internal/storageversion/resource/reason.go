package resource

// Reasons of blockers, beside those of package storageversion.
const (
	// ReasonResourceNotFound means that the API server serves no such resource.
	ReasonResourceNotFound = "ResourceNotFound"
	// ReasonNotInEtcd means that the API server keeps no objects of the resource: it makes them up for each
	// request, or the name is that of a subresource.
	ReasonNotInEtcd = "NotInEtcd"
	// ReasonAggregated means that another API server serves the resource, and keeps its objects elsewhere.
	ReasonAggregated = "Aggregated"
	// ReasonExpires means that objects of the resource are deleted by themselves, and that a write would make
	// them live longer.
	ReasonExpires = "Expires"
	// ReasonNotWritable means that objects of the resource can't be listed or patched.
	ReasonNotWritable = "NotWritable"
	// ReasonOldStoredVersions means that the resource is of a CRD with old versions in status.storedVersions.
	ReasonOldStoredVersions = "OldStoredVersions"
	// ReasonDiscoveryFailed means that the API server does not say which resources an API group has.
	ReasonDiscoveryFailed = "DiscoveryFailed"
	// ReasonConfigurationNotLoaded means that an API server has another encryption configuration than the one
	// that is given, or does not show which it has.
	ReasonConfigurationNotLoaded = "ConfigurationNotLoaded"
	// ReasonJournalTaken means that another run writes the same journal.
	ReasonJournalTaken = "JournalTaken"
	// ReasonNewerFormat means that a newer release of Godwit wrote the journal.
	ReasonNewerFormat = "NewerFormat"
)
