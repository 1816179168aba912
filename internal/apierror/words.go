package apierror

import "regexp"

// The API server's words, from k8s.io/apiserver: webhook/errors/statuserror.go,
// webhook/dispatcher.go, policy/validating/dispatcher.go,
// policy/generic/policy_dispatcher.go, admission/plugin/webhook/generic/webhook.go,
// admission/plugin/resourcequota/controller.go, storage/cacher/cacher.go and
// endpoints/handlers/responsewriters/errors.go; and
// from k8s.io/apiextensions-apiserver: conversion/webhook_converter.go and
// conversion/converter.go; and from k8s.io/apimachinery: util/managedfields/internal/structuredmerge.go;
// and from etcd, whose words the API server passes on without a reason.
var (
	policyDenies    = regexp.MustCompile(`(?s)([Pp]olicy) ['"]([^'"]*)['"](?: with binding '([^']*)')? denied request: (.*)`)
	webhookDenies   = regexp.MustCompile(`(?s)admission webhook "([^"]*)" denied the request(?:: |$)?(.*)`)
	webhookNoDryRun = regexp.MustCompile(`admission webhook "([^"]*)" does not support dry run`)
	webhookFails    = regexp.MustCompile(`(?s)failed calling webhook "([^"]*)": (.*)`)
	converterFails  = regexp.MustCompile(`(?s)conversion webhook for (.*?) (?:failed|returned)(?:: |, | )(.*)`)
	convertedKind   = regexp.MustCompile(`^[^ ]*/([^ /,]+), Kind=[^ ]+$`)
	versionGone     = regexp.MustCompile(`request to convert CR from an invalid group/version: [^ ]*/([^ /]+)`)
	typedFails      = regexp.MustCompile(`failed to create typed (?:live|patch) object`)
	unauthorized    = regexp.MustCompile(`: User "(.*)" cannot ([a-z]+) resource "([^"]*)"(?: in API group "([^"]*)")?(?: in the namespace "([^"]*)")?`)
	// unauthorizedPath is for discovery, which has no resource.
	unauthorizedPath = regexp.MustCompile(`: User "(.*)" cannot ([a-z]+) path "([^"]*)"`)
	admissionStarts  = regexp.MustCompile(`not yet ready to handle request`)
	quotaUncounted   = regexp.MustCompile(`status unknown for quota`)
	cacheUnfilled    = regexp.MustCompile(`storage is \(re\)initializing`)
	// storageFull matches the refusal of etcd while its alarm NOSPACE is set.
	storageFull = regexp.MustCompile(`etcdserver: mvcc: database space exceeded`)
	// keyMissing matches the API server's words about an object whose encryption key it lacks, from
	// server/options/encryptionconfig/config.go and storage/value/encrypt/identity/identity.go of k8s.io/apiserver.
	keyMissing = regexp.MustCompile(`no matching key was found for the provided|no matching prefix found|identity transformer tried to read encrypted data`)
	// keyInEtcd matches the key of an object that can't be read: storage/errors.go of k8s.io/apiserver.
	keyInEtcd = regexp.MustCompile(`corrupt object, Code: [0-9]+, Key: ([^ ,]+)`)
	// tooLarge matches the refusal of etcd, or of the API server's etcd client.
	tooLarge = regexp.MustCompile(`etcdserver: request is too large|trying to send message larger than max`)

	// unanswered matches the error of an HTTP client that got no answer.
	unanswered = regexp.MustCompile(`^(?:Post|Get) "`)
)

// FillsCache reports whether the text of a 429 says that the watch cache of a resource is not filled yet.
func FillsCache(text string) bool { return cacheUnfilled.MatchString(text) }

// parse classifies an answer by its text. The class is Unknown if the text matches no pattern.
func parse(text string) Answer {
	if m := policyDenies.FindStringSubmatch(text); m != nil {
		kind := "MutatingAdmissionPolicy"
		if m[1] == "Policy" {
			kind = "ValidatingAdmissionPolicy"
		}
		return Answer{Class: Denied, Origin: Origin{Kind: kind, Name: m[2], Binding: m[3]}, Cause: m[4]}
	}
	if m := webhookDenies.FindStringSubmatch(text); m != nil {
		return Answer{Class: Denied, Origin: Origin{Kind: Webhook, Name: m[1]}, Cause: m[2]}
	}
	if m := webhookNoDryRun.FindStringSubmatch(text); m != nil {
		return Answer{Class: NoDryRun, Origin: Origin{Kind: Webhook, Name: m[1]}, Cause: "it does not support dry runs"}
	}
	if m := webhookFails.FindStringSubmatch(text); m != nil {
		return Answer{Class: WebhookUnavailable, Origin: Origin{Kind: Webhook, Name: m[1]}, Cause: m[2]}
	}
	if m := converterFails.FindStringSubmatch(text); m != nil {
		a := Answer{Class: ConversionFailed, Origin: Origin{Kind: Conversion, Name: m[1]}, Cause: m[2], Message: m[0]}
		if unanswered.MatchString(m[2]) {
			a.Class = ConversionUnavailable
		}
		if v := convertedKind.FindStringSubmatch(m[1]); v != nil {
			a.StoredVersion = v[1]
		}
		return a
	}
	if m := unauthorized.FindStringSubmatch(text); m != nil {
		return Answer{Class: Forbidden, User: m[1], Permission: Permission{Verb: m[2], Resource: m[3], Group: m[4], Namespace: m[5]}}
	}
	if m := unauthorizedPath.FindStringSubmatch(text); m != nil {
		return Answer{Class: Forbidden, User: m[1], Permission: Permission{Verb: m[2], Path: m[3]}}
	}
	switch {
	case keyMissing.MatchString(text):
		return Answer{Class: KeyMissing}
	case storageFull.MatchString(text):
		return Answer{Class: StorageFull}
	case tooLarge.MatchString(text):
		return Answer{Class: TooLarge}
	}
	return Answer{}
}
