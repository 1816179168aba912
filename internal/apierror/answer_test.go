package apierror_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/internal/apierror"
)

func status(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

var (
	webhook   = apierror.Origin{Kind: apierror.Webhook, Name: "x.example.com"}
	converter = apierror.Origin{Kind: apierror.Conversion, Name: "example.com/v1, Kind=Widget"}
)

const notAuthorized = `widgets.example.com "a" is forbidden: User "alice" cannot patch resource "widgets/status" in API group "example.com" in the namespace "shop"`

const keyMissing = "failed to read one or more secrets from the storage: StorageError: corrupt object, Code: 7, Key: /registry/secrets/default/old1, ResourceVersion: 0, AdditionalErrorMsg: data from the storage is not transformable revision=0: no matching key was found for the provided AES transformer (and 1 more)"

func TestOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   apierror.Answer
	}{
		"a webhook denies": {
			reason: "a webhook chooses its code: a denial may be a 429 or a 500",
			err:    status(500, metav1.StatusReasonInternalError, `admission webhook "x.example.com" denied the request: my database is down`),
			want: apierror.Answer{Class: apierror.Denied, Origin: webhook, Cause: "my database is down",
				Message: `admission webhook "x.example.com" denied the request: my database is down`},
		},
		"a policy denies": {
			reason: "the answer names the policy and its binding",
			err:    status(422, metav1.StatusReasonInvalid, "ValidatingAdmissionPolicy 'freeze' with binding 'prod' denied request: frozen"),
			want: apierror.Answer{Class: apierror.Denied, Cause: "frozen",
				Origin:  apierror.Origin{Kind: "ValidatingAdmissionPolicy", Name: "freeze", Binding: "prod"},
				Message: "ValidatingAdmissionPolicy 'freeze' with binding 'prod' denied request: frozen"},
		},
		"a webhook with side effects": {
			reason: "the API server does not call it in a dry run",
			err:    status(400, metav1.StatusReasonBadRequest, `admission webhook "x.example.com" does not support dry run`),
			want: apierror.Answer{Class: apierror.NoDryRun, Origin: webhook, Cause: "it does not support dry runs",
				Message: `admission webhook "x.example.com" does not support dry run`},
		},
		"a webhook does not answer": {
			reason: "a 500 may name a webhook",
			err:    status(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "x.example.com": Post "https://x": refused`),
			want: apierror.Answer{Class: apierror.WebhookUnavailable, Origin: webhook, Cause: `Post "https://x": refused`,
				Message: `Internal error occurred: failed calling webhook "x.example.com": Post "https://x": refused`},
		},
		"the conversion webhook does not answer": {
			reason: "the version that it converts from is the one in etcd",
			err:    fmt.Errorf("list: %w", status(500, metav1.StatusReasonStoreReadError, `/registry/a: conversion webhook for example.com/v1, Kind=Widget failed: Post "https://x": refused`)),
			want: apierror.Answer{Class: apierror.ConversionUnavailable, Origin: converter, StoredVersion: "v1", Cause: `Post "https://x": refused`,
				Message: `conversion webhook for example.com/v1, Kind=Widget failed: Post "https://x": refused`},
		},
		"the conversion webhook fails": {
			reason: "it answers, but does not convert",
			err:    status(500, metav1.StatusReasonInternalError, "conversion webhook for example.com/v1, Kind=Widget failed: no such color"),
			want: apierror.Answer{Class: apierror.ConversionFailed, Origin: converter, StoredVersion: "v1", Cause: "no such color",
				Message: "conversion webhook for example.com/v1, Kind=Widget failed: no such color"},
		},
		"an object is at a version that is gone": {
			reason: "the message names the version",
			err:    status(500, metav1.StatusReasonStoreReadError, "/registry/a: request to convert CR from an invalid group/version: example.com/v1"),
			want: apierror.Answer{Class: apierror.UnreadableObject, StoredVersion: "v1",
				Message: "/registry/a: request to convert CR from an invalid group/version: example.com/v1",
				Cause:   "/registry/a: request to convert CR from an invalid group/version: example.com/v1"},
		},
		"an object is at a version that is gone, on a server that does not name it": {
			reason: "as before Kubernetes 1.37, by default: the reason is missing",
			err:    status(500, "", "request to convert CR from an invalid group/version: example.com/v1"),
			want: apierror.Answer{Class: apierror.UnreadableObject, StoredVersion: "v1",
				Message: "request to convert CR from an invalid group/version: example.com/v1",
				Cause:   "request to convert CR from an invalid group/version: example.com/v1"},
		},
		"an object at a version that is gone keeps the cache from starting": {
			reason: "429 means a busy server elsewhere",
			err:    status(429, metav1.StatusReasonTooManyRequests, "storage is (re)initializing: failed to list <unspecified>: request to convert CR from an invalid group/version: example.com/v1"),
			want: apierror.Answer{Class: apierror.UnreadableObject, StoredVersion: "v1",
				Message: "storage is (re)initializing: failed to list <unspecified>: request to convert CR from an invalid group/version: example.com/v1",
				Cause:   "storage is (re)initializing: failed to list <unspecified>: request to convert CR from an invalid group/version: example.com/v1"},
		},
		"a permission is missing": {
			reason: "the authorizer names the grant",
			err:    status(403, metav1.StatusReasonForbidden, notAuthorized),
			want: apierror.Answer{Class: apierror.Forbidden, User: "alice", Message: notAuthorized, Cause: notAuthorized,
				Permission: apierror.Permission{Verb: "patch", Namespace: "shop", Group: "example.com", Resource: "widgets/status"}},
		},
		"a permission for an object is missing": {
			reason: "the details name the object",
			err:    apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", errors.New(`User "alice" cannot get resource "secrets" in API group "" in the namespace "shop"`)),
			want: apierror.Answer{Class: apierror.Forbidden, User: "alice",
				Message:    `secrets "a" is forbidden: User "alice" cannot get resource "secrets" in API group "" in the namespace "shop"`,
				Cause:      `secrets "a" is forbidden: User "alice" cannot get resource "secrets" in API group "" in the namespace "shop"`,
				Permission: apierror.Permission{Verb: "get", Resource: "secrets", Namespace: "shop", Name: "a"}},
		},
		"a permission for discovery is missing": {
			reason: "it is for a path",
			err:    status(403, metav1.StatusReasonForbidden, `forbidden: User "alice" cannot get path "/apis"`),
			want: apierror.Answer{Class: apierror.Forbidden, User: "alice", Cause: `forbidden: User "alice" cannot get path "/apis"`,
				Message: `forbidden: User "alice" cannot get path "/apis"`, Permission: apierror.Permission{Verb: "get", Path: "/apis"}},
		},
		"the credentials are refused":  {"the code decides", status(401, metav1.StatusReasonUnauthorized, "Unauthorized"), apierror.Answer{Class: apierror.Unauthorized, Message: "Unauthorized", Cause: "Unauthorized"}},
		"an encryption key is missing": {"the object's key in etcd leads to the encryption key", status(500, metav1.StatusReasonStoreReadError, keyMissing), apierror.Answer{Class: apierror.KeyMissing, Key: "/registry/secrets/default/old1", Message: keyMissing, Cause: keyMissing}},
		"etcd is full":                 {"etcd's words, which the API server passes on", status(500, "", "etcdserver: mvcc: database space exceeded"), apierror.Answer{Class: apierror.StorageFull, Message: "etcdserver: mvcc: database space exceeded", Cause: "etcdserver: mvcc: database space exceeded"}},
		"too large for etcd":           {"etcd's words, which the API server passes on", status(500, "", "etcdserver: request is too large"), apierror.Answer{Class: apierror.TooLarge, Message: "etcdserver: request is too large", Cause: "etcdserver: request is too large"}},
		"too large for the server":     {"the code decides", status(413, metav1.StatusReasonRequestEntityTooLarge, "no"), apierror.Answer{Class: apierror.TooLarge, Message: "no", Cause: "no"}},
		"not found":                    {"the code decides", status(404, metav1.StatusReasonNotFound, "no"), apierror.Answer{Class: apierror.NotFound, Message: "no", Cause: "no"}},
		"conflict":                     {"the code decides", status(409, metav1.StatusReasonConflict, "no"), apierror.Answer{Class: apierror.Conflict, Message: "no", Cause: "no"}},
		"throttled":                    {"the code decides", status(429, metav1.StatusReasonTooManyRequests, "no"), apierror.Answer{Class: apierror.Throttled, Message: "no", Cause: "no"}},
		"timeout":                      {"a proxy gives no reason", status(504, "", "no"), apierror.Answer{Class: apierror.Timeout, Message: "no", Cause: "no"}},
		"server error":                 {"a proxy gives no message", status(502, "", ""), apierror.Answer{Class: apierror.ServerError, Message: "status code 502", Cause: "status code 502"}},
		"invalid":                      {"validation refuses, not admission", status(422, metav1.StatusReasonInvalid, "no"), apierror.Answer{Class: apierror.Refused, Message: "no", Cause: "no"}},
		"no answer":                    {"a lost connection is no answer", errors.New("EOF"), apierror.Answer{Class: apierror.Unknown, Message: "EOF", Cause: "EOF"}},
		"no error":                     {"there is nothing to classify", nil, apierror.Answer{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, apierror.Of(tc.err)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestParse classifies what a report keeps of an answer: its text.
func TestParse(t *testing.T) {
	if got := apierror.Parse(0, notAuthorized).Class; got != apierror.Forbidden {
		t.Errorf("class of the authorizer's words = %d, want %d", got, apierror.Forbidden)
	}
	if got := apierror.Parse(0, "no").Class; got != apierror.Unknown {
		t.Errorf("class of other words = %d, want %d", got, apierror.Unknown)
	}
	if got := apierror.Parse(http.StatusUnprocessableEntity, "no").Class; got != apierror.Refused {
		t.Errorf("class of a 422 = %d, want %d", got, apierror.Refused)
	}
}

func TestIsRefusalAndTransient(t *testing.T) {
	cases := map[string]struct {
		err                error
		refusal, transient bool
	}{
		"invalid":        {status(422, metav1.StatusReasonInvalid, "no"), true, false},
		"not allowed":    {status(403, metav1.StatusReasonForbidden, notAuthorized), true, false},
		"conflict":       {status(409, metav1.StatusReasonConflict, "no"), false, false},
		"not found":      {status(404, metav1.StatusReasonNotFound, "no"), false, false},
		"throttled":      {status(429, metav1.StatusReasonTooManyRequests, "no"), false, true},
		"unavailable":    {status(503, metav1.StatusReasonServiceUnavailable, "no"), false, true},
		"not converted":  {status(500, metav1.StatusReasonStoreReadError, "conversion webhook for example.com/v1, Kind=Widget failed: Post"), false, true},
		"damaged":        {status(500, metav1.StatusReasonStoreReadError, "invalid character"), false, false},
		"not an answer":  {errors.New("no"), false, false},
		"starting again": {apierror.RetryForbidden(status(403, metav1.StatusReasonForbidden, notAuthorized)), false, true},
		"denied":         {apierror.RetryForbidden(status(403, metav1.StatusReasonForbidden, `admission webhook "x" denied the request: no`)), true, false},
	}
	for name, tc := range cases {
		_, transient := apierror.Transient(tc.err)
		if got := apierror.IsRefusal(tc.err); got != tc.refusal || transient != tc.transient {
			t.Errorf("%s: refusal %t, transient %t; want %t, %t", name, got, transient, tc.refusal, tc.transient)
		}
	}
}

func TestOriginString(t *testing.T) {
	for want, o := range map[string]apierror.Origin{
		"webhook x.example.com":                           webhook,
		"ValidatingAdmissionPolicy freeze (binding prod)": {Kind: "ValidatingAdmissionPolicy", Name: "freeze", Binding: "prod"},
		"MutatingAdmissionPolicy paint":                   {Kind: "MutatingAdmissionPolicy", Name: "paint"},
	} {
		if got := o.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}

// TestIsUntyped: a server that can apply nothing to an object is told from one whose conversion webhook is down.
func TestIsUntyped(t *testing.T) {
	cases := map[string]struct {
		err  error
		want bool
	}{
		"no error":                 {nil, false},
		"does not follow a schema": {status(500, metav1.StatusReasonUnknown, `failed to create typed live object: .spec.tags: duplicate entries for key ["a"]`), true},
		"the webhook is down":      {status(500, metav1.StatusReasonUnknown, `conversion webhook for example.com/v1, Kind=Widget failed: Post "https://127.0.0.1:1/": dial tcp: connection refused`), false},
		"a timeout":                {apierrors.NewServerTimeout(schema.GroupResource{Resource: "widgets"}, "patch", 1), false},
		"etcd has no leader":       {status(500, metav1.StatusReasonInternalError, "etcdserver: leader changed"), false},
		"unavailable":              {status(503, metav1.StatusReasonServiceUnavailable, "the server is starting"), false},
		"refused":                  {status(422, metav1.StatusReasonInvalid, "spec.size is invalid"), false},
		"no answer":                {errors.New("connection refused"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := apierror.IsUntyped(tc.err); got != tc.want {
				t.Errorf("untyped = %t, want %t: %v", got, tc.want, tc.err)
			}
		})
	}
}
