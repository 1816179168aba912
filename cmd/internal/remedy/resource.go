package remedy

import "github.com/godwit-dev/godwit/internal/storageversion/resource"

// Resources are the reasons of `godwit resource`, beside those of [CRDs].
var Resources = []ReasonDoc{
	{Reason: resource.ReasonResourceNotFound, UserAction: true,
		Meaning: "The API server serves no resource of this name.",
		Remedy:  "Correct the name. `kubectl api-resources` lists the resources."},
	{Reason: resource.ReasonNotInEtcd, UserAction: true,
		Meaning: "The API server keeps no objects of the resource: it makes them up for each request, or the name is that of a subresource.",
		Remedy:  "Leave the resource out, or name the resource of the subresource."},
	{Reason: resource.ReasonAggregated, UserAction: true,
		Meaning: "Another API server serves the resource, and keeps its objects elsewhere.",
		Remedy:  "See in the documentation of that API server how it stores objects."},
	{Reason: resource.ReasonExpires, UserAction: true,
		Meaning: "Events are deleted by themselves, an hour after their last write by default. A write would make them live longer.",
		Remedy:  "Leave them out. Keep the old key for as long as `--event-ttl` of kube-apiserver says."},
	{Reason: resource.ReasonNotWritable, UserAction: true,
		Meaning: "The API server does not let objects of the resource be listed and patched.",
		Remedy:  "Leave the resource out."},
	{Reason: resource.ReasonOldStoredVersions, UserAction: true,
		Meaning: "The resource is of a CRD with old versions in status.storedVersions.",
		Remedy:  "Run `godwit crd run` for that CRD, which also writes every object."},
	{Reason: resource.ReasonDiscoveryFailed, UserAction: true,
		Meaning: "The API server does not say which resources an API group has: the API server of the group is down.",
		Remedy:  "See the conditions of its APIService: `kubectl get apiservices`."},
	{Reason: resource.ReasonConfigurationNotLoaded, UserAction: true,
		Meaning: "An API server has loaded another encryption configuration than the file of `--encryption-config`, or does not show which.",
		Remedy:  "Give it the configuration, and restart it unless it reloads it. The run waits, and writes nothing before."},
	{Reason: resource.ReasonNewerFormat, UserAction: true,
		Meaning: "A newer release of Godwit wrote the journal of an interrupted run, in a format that this release does not read. Nothing is written.",
		Remedy:  "Resume with that release, or a newer one. If it is gone for good, delete the ConfigMap godwit-resource-run: the run starts from the beginning."},
	{Reason: resource.ReasonJournalTaken, UserAction: true,
		Meaning: "Another run of `godwit resource` has begun since, and writes the same journal.",
		Remedy:  "Let one of the runs end, then start the other one again."},
}
