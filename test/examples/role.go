package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const rbacMarker = "// +kubebuilder:rbac:"

// rules reads the markers of a program. The key "" has the rules of a ClusterRole, and a namespace has the rules of its Role.
func rules(dir string) (map[string][]rbacv1.PolicyRule, error) {
	text, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if err != nil {
		return nil, err
	}
	byNamespace := map[string][]rbacv1.PolicyRule{}
	for line := range strings.Lines(string(text)) {
		arguments, ok := strings.CutPrefix(strings.TrimSpace(line), rbacMarker)
		if !ok {
			continue
		}
		var rule rbacv1.PolicyRule
		namespace := ""
		for argument := range strings.SplitSeq(arguments, ",") {
			key, value, _ := strings.Cut(argument, "=")
			values := strings.Split(value, ";")
			switch key {
			case "groups":
				rule.APIGroups = values
			case "resources":
				rule.Resources = values
			case "resourceNames":
				rule.ResourceNames = values
			case "verbs":
				rule.Verbs = values
			case "namespace":
				namespace = value
			default:
				return nil, fmt.Errorf("unknown key %q in an RBAC marker: %s", key, line)
			}
		}
		byNamespace[namespace] = append(byNamespace[namespace], rule)
	}
	return byNamespace, nil
}

// grant grants the permissions of the markers to a user named after the example, and returns when the API server applies
// them.
func (p *play) grant(ctx context.Context, config *rest.Config) error {
	granted, err := rules(p.dir)
	if err != nil {
		return err
	}
	admin, err := kubernetes.NewForConfig(p.plane.Config())
	if err != nil {
		return err
	}
	named := metav1.ObjectMeta{Name: p.name}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: p.name}}
	for _, namespace := range slices.Sorted(maps.Keys(granted)) {
		if namespace == "" {
			_, err = admin.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: named, Rules: granted[namespace]}, metav1.CreateOptions{})
			if err == nil {
				_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
					ObjectMeta: named, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: p.name},
				}, metav1.CreateOptions{})
			}
		} else {
			_, err = admin.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: named, Rules: granted[namespace]}, metav1.CreateOptions{})
			if err == nil {
				_, err = admin.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
					ObjectMeta: named, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: p.name},
				}, metav1.CreateOptions{})
			}
		}
		if err != nil {
			return fmt.Errorf("grant permissions to %s: %w", p.name, err)
		}
		if err := awaitAllowed(ctx, config, namespace, granted[namespace]); err != nil {
			return err
		}
	}
	p.print("user %s has exactly the permissions of the markers in main.go", p.name)
	return nil
}

// awaitAllowed waits until the user has one permission of the last rule, because a role takes effect as a whole.
func awaitAllowed(ctx context.Context, config *rest.Config, namespace string, granted []rbacv1.PolicyRule) error {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	last := granted[len(granted)-1]
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: last.Verbs[0], Group: last.APIGroups[0], Resource: last.Resources[0],
		},
	}}
	for {
		answer, err := clients.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && answer.Status.Allowed {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the permissions of a new role: %w", context.Cause(ctx))
		case <-time.After(pollEvery):
		}
	}
}
