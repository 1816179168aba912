package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/apierror"
)

// Allowed asks the API server with an access review whether the caller has a permission. The answer covers all of its
// authorizers.
func Allowed(ctx context.Context, c rest.Interface, g Grant) (bool, error) {
	allowed, err := Allows(ctx, c, apierror.Permission{Verb: g.Verb, Group: g.Resource.Group, Resource: g.Resource.Resource, Name: g.Name, Namespace: g.Namespace})
	if err != nil {
		return false, fmt.Errorf("review the access to %s: %w", g, err)
	}
	return allowed, nil
}

// Allows is [Allowed] for a permission that an authorizer has denied.
func Allows(ctx context.Context, c rest.Interface, p apierror.Permission) (bool, error) {
	review := ReviewOf(p)
	if err := postReview(ctx, c, review, "apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"); err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// ReviewOf returns the access review for a permission of the caller.
func ReviewOf(p apierror.Permission) *authorizationv1.SelfSubjectAccessReview {
	review := &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
	}
	if p.Path != "" {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: p.Verb, Path: p.Path}
		return review
	}
	resource, subresource, _ := strings.Cut(p.Resource, "/")
	review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Verb: p.Verb, Group: p.Group, Resource: resource, Subresource: subresource, Name: p.Name, Namespace: p.Namespace,
	}
	return review
}

// Denied returns the permissions that the caller lacks.
func Denied(ctx context.Context, c rest.Interface, needed []Grant) ([]Grant, error) {
	var denied []Grant
	for _, g := range needed {
		ok, err := Allowed(ctx, c, g)
		if err != nil {
			return nil, err
		}
		if !ok {
			denied = append(denied, g)
		}
	}
	return denied, nil
}

// UserName returns the caller's user name; empty if the API server does not report it.
func UserName(ctx context.Context, c rest.Interface) string {
	review := &authenticationv1.SelfSubjectReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
	}
	if err := postReview(ctx, c, review, "apis", "authentication.k8s.io", "v1", "selfsubjectreviews"); err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

// postReview posts a review, which the API server answers and does not store. It encodes and decodes JSON itself,
// because the client's serializer does not know the kinds.
func postReview(ctx context.Context, c rest.Interface, review runtime.Object, path ...string) error {
	text, err := json.Marshal(review)
	if err != nil {
		return err
	}
	text, err = Body(Do(ctx, c.Post().AbsPath(path...).
		SetHeader("Content-Type", runtime.ContentTypeJSON).SetHeader("Accept", runtime.ContentTypeJSON).Body(text)))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, review)
}
