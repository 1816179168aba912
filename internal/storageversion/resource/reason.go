package resource

import "github.com/godwit-dev/godwit"

// Reasons are those of a plan and a run of a resource.
var Reasons godwit.Catalog

// Reasons of blockers, beside those of package storageversion.
var (
	ReasonResourceNotFound = Reasons.Declare(godwit.Reason{
		Name: "ResourceNotFound", UserAction: true,
		Meaning: "The API server serves no resource of this name.",
		Fix:     godwit.Do("correct the name. `kubectl api-resources` lists the resources"),
	})
	ReasonNotInEtcd = Reasons.Declare(godwit.Reason{
		Name: "NotInEtcd", UserAction: true,
		Meaning: "The API server keeps no objects of the resource: it makes them up for each request, or the name is that of a subresource.",
		Fix:     godwit.Do("leave the resource out, or name the resource of the subresource"),
	})
	ReasonAggregated = Reasons.Declare(godwit.Reason{
		Name: "Aggregated", UserAction: true,
		Meaning: "Another API server serves the resource, and keeps its objects elsewhere.",
		Fix:     godwit.Do("see in the documentation of that API server how it stores objects"),
	})
	ReasonExpires = Reasons.Declare(godwit.Reason{
		Name: "Expires", UserAction: true,
		Meaning: "Events are deleted by themselves, an hour after their last write by default. A write would make them live longer.",
		Fix:     godwit.Do("leave them out. Keep the old key for as long as `--event-ttl` of kube-apiserver says"),
	})
	ReasonNotWritable = Reasons.Declare(godwit.Reason{
		Name: "NotWritable", UserAction: true,
		Meaning: "The API server does not let objects of the resource be listed and patched.",
		Fix:     godwit.Do("leave the resource out"),
	})
	ReasonOldStoredVersions = Reasons.Declare(godwit.Reason{
		Name: "OldStoredVersions", UserAction: true,
		Meaning: "The resource is of a CRD with old versions in status.storedVersions.",
		Fix:     godwit.Do("run `godwit crd run` for that CRD, which also writes every object"),
	})
	ReasonDiscoveryFailed = Reasons.Declare(godwit.Reason{
		Name: "DiscoveryFailed", UserAction: true,
		Meaning: "The API server does not say which resources an API group has: the API server of the group is down.",
		Fix:     godwit.Do("see the conditions of its APIService: `kubectl get apiservices`"),
	})
	ReasonConfigurationNotLoaded = Reasons.Declare(godwit.Reason{
		Name: "ConfigurationNotLoaded", UserAction: true,
		Meaning: "An API server has loaded another encryption configuration than the file of `--encryption-config`, or does not show which.",
		Fix:     godwit.Do("give it the configuration, and restart it unless it reloads it. The run waits, and writes nothing before"),
	})
	ReasonJournalTaken = Reasons.Declare(godwit.Reason{
		Name: "JournalTaken", UserAction: true,
		Meaning: "Another run of `godwit resource` has begun since, and writes the same journal.",
		Fix:     godwit.Do("let one of the runs end, then start the other one again"),
	})
	ReasonNewerFormat = Reasons.Declare(godwit.Reason{
		Name: "NewerFormat", UserAction: true,
		Meaning: "A newer release of Godwit wrote the journal of an interrupted run, in a format that this release does not read. Nothing is written.",
		Fix:     godwit.Do("resume with that release, or a newer one. If it is gone for good, delete the ConfigMap godwit-resource-run: the run starts from the beginning"),
	})
)
