package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// remedy is the command that an administrator is told to run.
var remedy = regexp.MustCompile(`an administrator runs:\s+(.+)`)

// administrator USER: runs what the last command told an administrator to run, and
// returns when the API server grants USER what that gave.
func administrator(ts *testscript.TestScript, args []string) error {
	printed := ts.ReadFile("stderr") + ts.ReadFile("stdout")
	found := remedy.FindStringSubmatch(printed)
	if found == nil {
		return fmt.Errorf("nothing tells an administrator what to run:\n%s", printed)
	}
	before := time.Now().Add(-time.Second).Truncate(time.Second)
	if err := ts.Exec("sh", "-ec", found[1]); err != nil {
		return err
	}
	return awaitGrants(ts, args[0], before)
}

// awaitGrants waits for the permissions of a user that were granted since then.
func awaitGrants(ts *testscript.TestScript, user string, since time.Time) error {
	clients, err := kubernetes.NewForConfig(clusterOf(ts).Config())
	if err != nil {
		return err
	}
	ctx, rbac := context.Background(), clients.RbacV1()
	granted := map[string][]rbacv1.PolicyRule{} // by namespace
	clusterWide, err := rbac.ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, b := range clusterWide.Items {
		if !b.CreationTimestamp.Time.Before(since) && isOf(b.Subjects, user) {
			role, err := rbac.ClusterRoles().Get(ctx, b.RoleRef.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			granted[""] = append(granted[""], role.Rules...)
		}
	}
	within, err := rbac.RoleBindings("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, b := range within.Items {
		if !b.CreationTimestamp.Time.Before(since) && isOf(b.Subjects, user) {
			role, err := rbac.Roles(b.Namespace).Get(ctx, b.RoleRef.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			granted[b.Namespace] = append(granted[b.Namespace], role.Rules...)
		}
	}
	if len(granted) == 0 {
		return fmt.Errorf("nothing was granted to %s", user)
	}
	return eventually(func() error { return allowed(ctx, clients, user, granted) })
}

func isOf(subjects []rbacv1.Subject, user string) bool {
	return len(subjects) == 1 && subjects[0].Kind == rbacv1.UserKind && subjects[0].Name == user
}

// allowed asks about the last verb, resource and name of each rule: the authorizer
// learns of a rule as a whole.
func allowed(ctx context.Context, clients kubernetes.Interface, user string, granted map[string][]rbacv1.PolicyRule) error {
	for namespace, rules := range granted {
		for _, rule := range rules {
			resource, subresource, _ := strings.Cut(last(rule.Resources), "/")
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: last(rule.Verbs), Group: last(rule.APIGroups),
					Resource: resource, Subresource: subresource, Name: last(rule.ResourceNames),
				},
			}}
			answer, err := clients.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			if !answer.Status.Allowed {
				return fmt.Errorf("%s has no permission yet: %+v", user, rule)
			}
		}
	}
	return nil
}

func last(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// programsFolder has kubectl, which a remedy pipes into.
func programsFolder() (string, error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join("..", "..", "bin", "controlplane")
	}
	folder, err := filepath.Abs(assets)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(folder, "kubectl")); err != nil {
		return "", errors.Join(errors.New("find kubectl beside kube-apiserver: run `make controlplane`"), err)
	}
	return folder, nil
}
