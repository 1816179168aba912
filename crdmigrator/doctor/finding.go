package doctor

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/placeholder"
	"github.com/godwit-dev/godwit/internal/storageversion/ownerreference"
	"github.com/godwit-dev/godwit/internal/storageversion/values"
)

// Reasons are those of findings.
var Reasons godwit.Catalog

// Reasons of findings.
var (
	ReasonOwnerReferenceNotServed = Reasons.Declare(godwit.Reason{
		Name: "OwnerReferenceNotServed", UserAction: true,
		Meaning: "ownerReferences name a version that the API server does not serve. The garbage collector can't look up the owner: it never deletes the dependents of a deleted owner, and a deletion of the owner in the foreground waits for ever.",
		Fix: repair(placeholder.Name, "").Or(repairBefore(placeholder.Name), serveAndRepair(serve(placeholder.CRD(), placeholder.Version), placeholder.Name),
			repairAfter(placeholder.Name), seeWhyUnlisted(placeholder.Name)),
	})
	ReasonOwnerGone = Reasons.Declare(godwit.Reason{
		Name: "OwnerGone", UserAction: true,
		Meaning: "ownerReferences name a version that is not served, and an owner that does not exist in the namespace. The garbage collector would delete the objects if the references named a version that is served, so a run leaves them.",
		Fix:     keepDependent(placeholder.Name, removeAt(placeholder.Object(), "INDEX", "UID")).Or(deleteDependent(placeholder.Object())),
	})
	ReasonWebhookNotServed = Reasons.Declare(godwit.Reason{
		Name: "WebhookNotServed", UserAction: true,
		Meaning: "A rule of a webhook configuration names a version that is not served. A webhook whose rule names no other version is not called any more once the CRD lacks the version.",
		Fix:     ruleFix("/webhooks/INDEX/rules", nameInWebhook),
	})
	ReasonPolicyNotServed = Reasons.Declare(godwit.Reason{
		Name: "PolicyNotServed", UserAction: true,
		Meaning: "A rule of a ValidatingAdmissionPolicy, a MutatingAdmissionPolicy or one of their bindings names a version that is not served. A policy whose rule names no other version does not apply any more once the CRD lacks the version, and a rule that excludes requests does not exclude them any more.",
		Fix:     ruleFix("/spec/matchConstraints/resourceRules", nameInPolicy, exclude),
	})
	ReasonPolicyParametersNotServed = Reasons.Declare(godwit.Reason{
		Name: "PolicyParametersNotServed", UserAction: true,
		Meaning: "The paramKind of an admission policy names a version that is not served. Once the CRD lacks the version, the API server can't read the parameters, and denies every request that the policy matches unless its failurePolicy is Ignore.",
		Fix:     readParameters(applied{Object: placeObject()}, "GROUP/OLD", "GROUP/"+placeholder.Version, placeholder.Version).Or(nameServed(placeObject())),
	})
	ReasonRoleNotServed = Reasons.Declare(godwit.Reason{
		Name: "RoleNotServed", UserAction: true,
		Meaning: "A rule of a ClusterRole allows a path of a version that no CRD of the API group serves.",
		Fix:     allowMeant(applied{Object: placeObject()}, "/rules/INDEX/nonResourceURLs", []string{"/apis/GROUP/OLD"}, []string{"/apis/GROUP/" + placeholder.Version}).Or(removeRule(placeObject())),
	})
	ReasonRoleGroupHasVersion = Reasons.Declare(godwit.Reason{
		Name: "RoleGroupHasVersion", UserAction: true,
		Meaning: "A rule of a role has an API group with a version, such as example.com/v1. It matches no request: an API group in RBAC has no version.",
		Fix:     allowMeant(applied{Object: placeObject()}, "/rules/INDEX/apiGroups", []string{"GROUP/" + placeholder.Version}, []string{"GROUP"}),
	})
	ReasonAPIServiceNotServed = Reasons.Declare(godwit.Reason{
		Name: "APIServiceNotServed", UserAction: true,
		Meaning: "An APIService is of a version that no CRD of the API group serves, and no other API server serves it.",
		Fix:     deleteAPIService("VERSION.GROUP"),
	})
	ReasonConversionServiceNotFound = Reasons.Declare(godwit.Reason{
		Name: "ConversionServiceNotFound", UserAction: true,
		Meaning: "The Service of the conversion webhook does not exist. The API server can't convert objects.",
		Fix:     installService().Or(rescueWithoutWebhook(placeholder.Name), removeWebhook(kube.RemoveConversion(placeholder.CRD()))),
	})
	ReasonLastAppliedNotServed = Reasons.Declare(godwit.Reason{
		Name: "LastAppliedNotServed", UserAction: true,
		Meaning: "Objects were applied by `kubectl apply` from manifests at a version that is not served. The next apply of these manifests fails.",
		Fix:     applyAt("apiVersion: GROUP/" + placeholder.Version).Or(applyAt(anyServed)),
	})
	ReasonManagedFieldsLackField = Reasons.Declare(godwit.Reason{
		Name: "ManagedFieldsLackField", UserAction: true,
		Meaning: "managedFields of objects name a served version whose schema lacks fields of the storage version. The API server can't convert such a field to that version: each server-side apply of an object that has one fails with `field not declared in schema`.",
		Fix:     addFields(placeholder.Version).Or(unserve(placeholder.Name, placeholder.Version, kube.SetServed(placeholder.CRD(), false, placeholder.Version))),
	})
)

// ReasonHelmReleaseNotServed is about the manifests that Helm keeps.
var ReasonHelmReleaseNotServed = Reasons.Declare(godwit.Reason{
	Name: "HelmReleaseNotServed", UserAction: true,
	Meaning: "The manifest that Helm keeps of a release has objects at a version that is not served. Each upgrade of the release fails: Helm is unable to build Kubernetes objects from the current release manifest.",
	Fix: mapAPIs(placeholder.Namespace, "RELEASE").Then("upgrade the release with a chart that has apiVersion: GROUP/"+placeholder.Version).
		Or(upgradeChart(placeholder.Namespace, "RELEASE", "apiVersion: GROUP/"+placeholder.Version), mapAPIs(placeholder.Namespace, "RELEASE"),
			mapAPIs(placeholder.Namespace, "RELEASE").Then("upgrade the release with a chart that has "+anyServed),
			upgradeChart(placeholder.Namespace, "RELEASE", anyServed)),
})

// Finding is about one reference to a version that is not served, or about several of one kind.
type Finding struct {
	// Finding names an object and the cause. It blocks if something does not work; otherwise it warns of a leftover.
	godwit.Finding
	// Objects counts the objects that the finding is about.
	Objects int64
}

// Broken reports whether something does not work. Otherwise the finding is about a leftover.
func (f Finding) Broken() bool { return f.Severity == godwit.Blocks }

// severity is that of a finding about something broken, or about a leftover.
func severity(broken bool) godwit.Severity {
	if broken {
		return godwit.Blocks
	}
	return godwit.Warns
}

// Subject is a CRD of the cluster, and the versions that count as served.
type Subject struct {
	// Owners.Kept are the versions that count as served.
	Owners ownerreference.Owners
	// Versions are the versions in spec.versions of the CRD.
	Versions []string
	// Release means that a version counts as served if the next release serves it.
	Release bool
	// Unserved are the versions in spec.versions that the CRD does not serve.
	Unserved []string
	// Conversion is the Service of the conversion webhook; nil without one.
	Conversion *types.NamespacedName
	// withoutConversion removes the webhook.
	withoutConversion godwit.Patch
	// Narrow are served versions to which managedFields can't be converted.
	Narrow []Narrow
	// StorageNotServed is the fix that serves the storage version; nil if the CRD serves it.
	StorageNotServed godwit.Fix
}

// SubjectOf returns a CRD of the cluster with the versions that it serves.
func SubjectOf(crd *apiextensionsv1.CustomResourceDefinition) Subject {
	s := Subject{Owners: ownerreference.OwnersOf(crd, ownerreference.ServedVersions)}
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		s.Versions = append(s.Versions, v.Name)
		if !v.Served {
			s.Unserved = append(s.Unserved, v.Name)
		}
	}
	if webhook := kube.ConversionWebhook(crd); webhook != nil && webhook.Service != nil {
		s.Conversion = &types.NamespacedName{Namespace: webhook.Service.Namespace, Name: webhook.Service.Name}
		s.withoutConversion = kube.RemoveConversion(crd)
	}
	s.Narrow = narrowVersions(crd)
	if storage := kube.StorageVersion(crd); !kube.Serves(crd, storage) {
		s.StorageNotServed = serve(crd, storage)
	}
	return s
}

// Narrow is a served version whose schema lacks fields of the storage version. To apply an object, the API server converts it to
// each version that its managedFields name, and refuses a field that the schema of the version lacks.
type Narrow struct {
	Version string
	// Lacks are the paths of the fields.
	Lacks []string
	// Unserve stops serving the version.
	Unserve godwit.Patch
}

// narrowVersions are the narrow versions of a CRD without a conversion webhook, which may move the fields.
func narrowVersions(crd *apiextensionsv1.CustomResourceDefinition) []Narrow {
	if kube.ConversionWebhook(crd) != nil {
		return nil
	}
	storage := kube.StorageVersion(crd)
	var all []Narrow
	for _, v := range kube.ServedVersions(crd) {
		if v == storage {
			continue
		}
		if lacks := values.Unkept(kube.SchemaOf(crd, storage), kube.SchemaOf(crd, v)); len(lacks) > 0 {
			all = append(all, Narrow{v, lacks, kube.SetServed(crd, false, v)})
		}
	}
	return all
}

// Release returns a CRD of the cluster with the versions that its next release serves.
func Release(live, next *apiextensionsv1.CustomResourceDefinition) Subject {
	s := SubjectOf(live)
	s.Owners, s.Release, s.Narrow = s.Owners.InRelease(next), true, nil
	return s
}

// Drops reports whether the CRD has a version that does not count as served.
func (s Subject) Drops() bool {
	return slices.ContainsFunc(s.Versions, func(v string) bool { return !s.countsAsServed(v) })
}

// countsAsServed reports whether a reference may name the version.
func (s Subject) countsAsServed(version string) bool { return slices.Contains(s.Owners.Kept, version) }

// notServed is the part of a message that says that a version is not served.
func (s Subject) notServed(version string) string {
	if s.Release {
		return version + ", which the next release of " + s.Owners.CRD + " does not serve"
	}
	return version + ", which " + s.Owners.CRD + " does not serve"
}

// Reference is an ownerReference that names a version which is not served.
type Reference struct {
	CRD       string
	Dependent *ownerreference.Dependent
	// Index is the position of the reference in metadata.ownerReferences, from 0.
	Index    int
	Decision ownerreference.Decision
}

// VersionUse counts objects of a CRD whose metadata name a version.
type VersionUse struct {
	CRD, Version string
	Objects      int64
	// Example is one of them.
	Example string
}

// HelmRelease has the objects of one release of Helm that are of a CRD, at a version which is not served.
type HelmRelease struct {
	CRD, Version    string
	Namespace, Name string
	// Chart is the name and the version of the chart.
	Chart   string
	Objects int64
	// Example is the kind and the name of one of them.
	Example string
}

// WebhookConfiguration is what a ValidatingWebhookConfiguration and a MutatingWebhookConfiguration have in common.
type WebhookConfiguration struct {
	metav1.ObjectMeta `json:"metadata"`

	// Resource is validatingwebhookconfiguration or mutatingwebhookconfiguration.
	Resource string `json:"-"`
	Webhooks []struct {
		Name  string                                       `json:"name"`
		Rules []admissionregistrationv1.RuleWithOperations `json:"rules"`
	} `json:"webhooks"`
}

// AdmissionPolicy is what a ValidatingAdmissionPolicy and a MutatingAdmissionPolicy have in common, or their bindings.
type AdmissionPolicy struct {
	metav1.ObjectMeta `json:"metadata"`

	// Resource is the resource in the singular, such as validatingadmissionpolicy or mutatingadmissionpolicybinding.
	Resource string `json:"-"`
	Spec     struct {
		FailurePolicy    admissionregistrationv1.FailurePolicyType `json:"failurePolicy"`
		ParamKind        *admissionregistrationv1.ParamKind        `json:"paramKind"`
		MatchConstraints *admissionregistrationv1.MatchResources   `json:"matchConstraints"`
		// MatchResources are those of a binding.
		MatchResources *admissionregistrationv1.MatchResources `json:"matchResources"`
	} `json:"spec"`
}

// Role is a Role or a ClusterRole.
type Role struct {
	metav1.ObjectMeta `json:"metadata"`

	Rules           []rbacv1.PolicyRule     `json:"rules"`
	AggregationRule *rbacv1.AggregationRule `json:"aggregationRule"`
}

// APIService is the part of an APIService with its version, and with the server that serves it.
type APIService struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		// Service is nil for the API server itself.
		Service *struct{} `json:"service"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// Facts are all that [For] decides on.
type Facts struct {
	Subjects   []Subject
	References []Reference
	// Applied are of the annotation of kubectl apply, with versions that are not served.
	Applied []VersionUse
	// Owned are of managedFields, with versions that are [Narrow].
	Owned       []VersionUse
	Helm        []HelmRelease
	Webhooks    []WebhookConfiguration
	Policies    []AdmissionPolicy
	Roles       []Role
	APIServices []APIService
	// Services are all Services of the cluster.
	Services map[types.NamespacedName]struct{}
	// Objects counts the objects whose metadata was read.
	Objects int64
	// Unread are the resources that could not be read. They may have references.
	Unread []ownerreference.Unread
}
