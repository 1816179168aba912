// Package doctor finds what names a version of a CRD that the API server does not serve: ownerReferences, rules of webhooks,
// of admission policies and of RBAC, parameters of admission policies, APIServices, the annotation of kubectl apply, and a conversion webhook whose Service does not exist.
//
// [Doctor.Observe] reads the [Facts] about all CRDs at once, and [For] decides on them, purely. It changes nothing. With the
// CRDs of a release ([Release]), the versions that count are those that the release serves.
//
// # Reading order
//
// fix.go has what a user can do, finding.go has the reasons and the facts. reference.go, rule.go, webhook.go, policy.go, role.go, apiservice.go and conversion.go each decide
// about one kind of fact, diagnosis.go decides about all, and observe.go reads. A file uses only files before it.
package doctor
