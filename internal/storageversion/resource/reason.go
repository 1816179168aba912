package resource

import (
	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/placeholder"
	"github.com/godwit-dev/godwit/internal/storageversion/decision"
)

// Reasons are those of a plan and a run of a resource.
var Reasons godwit.Catalog

// Reasons of blockers, beside those of package decision.
var (
	ReasonResourceNotFound = Reasons.Declare(godwit.Reason{
		Name: "ResourceNotFound", UserAction: true,
		Meaning: "The API server serves no resource of this name.",
		Fix:     DidYouMean(placeholder.Name).Or(listResources()),
	})
	ReasonNotInEtcd = Reasons.Declare(godwit.Reason{
		Name: "NotInEtcd", UserAction: true,
		Meaning: "The API server keeps no objects of the resource: it makes them up for each request, or the name is that of a subresource.",
		Fix:     leaveOut().Or(nameParent(placeholder.Resource)),
	})
	ReasonAggregated = Reasons.Declare(godwit.Reason{
		Name: "Aggregated", UserAction: true,
		Meaning: "Another API server serves the resource, and keeps its objects elsewhere.",
		Fix:     seeDocumentation("VERSION.GROUP"),
	})
	ReasonExpires = Reasons.Declare(godwit.Reason{
		Name: "Expires", UserAction: true,
		Meaning: "Events are deleted by themselves, an hour after their last write by default. A write would make them live longer.",
		Fix:     keepKey(),
	})
	ReasonNotWritable = Reasons.Declare(godwit.Reason{
		Name: "NotWritable", UserAction: true,
		Meaning: "The API server does not let objects of the resource be listed and patched.",
		Fix:     leaveOut(),
	})
	ReasonOldStoredVersions = Reasons.Declare(godwit.Reason{
		Name: "OldStoredVersions", UserAction: true,
		Meaning: "The resource is of a CRD with old versions in status.storedVersions.",
		Fix:     migrateCRD(placeholder.Name),
	})
	ReasonDiscoveryFailed = Reasons.Declare(godwit.Reason{
		Name: "DiscoveryFailed", UserAction: true,
		Meaning: "The API server does not say which resources an API group has: the API server of the group is down.",
		Fix:     seeServer("VERSION.GROUP"),
	})
	ReasonConfigurationNotLoaded = Reasons.Declare(godwit.Reason{
		Name: "ConfigurationNotLoaded", UserAction: true,
		Meaning: "An API server has loaded another encryption configuration than the file of `--encryption-config`, or does not show which.",
		Fix:     loadConfiguration().Or(BindMonitoring(placeholder.User)),
	})
	ReasonJournalTaken = Reasons.Declare(godwit.Reason{
		Name: "JournalTaken", UserAction: true,
		Meaning: "Another run of `godwit resource` has begun since, and writes the same journal.",
		Fix:     godwit.Do("let one of the runs end, then start the other one again"),
	})
	ReasonNewerFormat = format.DeclareNewer(&Reasons, "wrote the journal of an interrupted run",
		"Nothing is written.", godwit.Do("resume with that release, or a newer one. If it is gone for good, delete the ConfigMap godwit-resource-run: the run starts from the beginning"))
)

// Reasons that a CRD has as well, with another fix: its objects are not at old versions, and there is no other write to choose.
var (
	ReasonAdmissionDenied = Reasons.Declare(godwit.Reason{
		Name: "AdmissionDenied", UserAction: true,
		Meaning: "A webhook or a policy denies the write of some object, as a dry run shows.",
		Fix: decision.FindAndExempt(placeholder.User, "ORIGIN", godwit.Edit{Object: godwit.Object{Resource: placeholder.Resource, Name: placeholder.Name}}).
			Or(decision.EditObject(placeholder.Object()), keepForm()),
	})
	ReasonWebhookUnavailable = Reasons.Declare(godwit.Reason{
		Name: "WebhookUnavailable", UserAction: true,
		Meaning: "A webhook that the API server needs to read or write some object does not answer, as a dry run shows.",
		Fix:     decision.BringUp(decision.AllWebhooks).Or(decision.FindAndExempt(placeholder.User, "ORIGIN"), keepForm()),
	})
	ReasonObjectInvalid = Reasons.Declare(godwit.Reason{
		Name: "ObjectInvalid", UserAction: true,
		Meaning: "The API server refuses some object as it is stored, as a dry run shows.",
		Fix:     decision.EditObject(placeholder.Object()).Or(keepForm()),
	})
	ReasonUnreadableObjects = Reasons.Declare(godwit.Reason{
		Name: "UnreadableObjects", UserAction: true,
		Meaning: "The API server can't read some object from etcd: the bytes are damaged, or a key is another one than the one that encrypted the object.",
		Fix:     distributeKey(),
	})
)
