// Package doctor finds references to versions of a CRD that the API server does not serve: in ownerReferences, in rules of
// webhooks, of admission policies and of RBAC, in parameters of admission policies, in APIServices, in the annotation of
// kubectl apply, and in the manifests that Helm keeps in Secrets. It also finds a conversion webhook whose Service does not exist.
//
// [Doctor.Observe] reads the [Facts] about all CRDs at once, and [For] decides on them, purely. The package changes nothing. With
// the CRDs of a release ([Release]), a version counts as served if the release serves it.
//
// # Reading order
//
// fix.go has what a user can do, finding.go has the reasons and the facts. reference.go, rule.go, webhook.go, policy.go, role.go,
// apiservice.go, conversion.go and helm.go each decide about one kind of fact, diagnosis.go decides about all, and observe.go reads. A file
// uses only files before it.
package doctor
