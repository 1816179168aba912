package cli

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/cmd/internal/report"
	"github.com/godwit-dev/godwit/crdmigrator"
)

// right is what a command does with a resource.
type right struct {
	resource schema.GroupResource
	verbs    []string
	cluster  bool // the resource is in no namespace
}

var storedRevisions = schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}

// rightsToRead are those that every command needs. A list that is refused leaves
// nothing to say: a reference that nobody looked for can be lost.
func (s *revisionSession) rightsToRead() []right {
	rights := []right{{definitions, []string{"get"}, true}}
	for _, r := range s.family.Describe().Referrers {
		rights = append(rights, right{resource: r.Resource, verbs: []string{"list"}})
	}
	return rights
}

// rightsToWrite are those that a run needs besides.
func (s *revisionSession) rightsToWrite() []right {
	var rights []right
	for _, r := range s.family.Describe().Referrers {
		if r.Resource == storedRevisions {
			rights = append(rights, right{resource: r.Resource, verbs: []string{"get", "create", "patch", "delete"}})
			continue
		}
		rights = append(rights, right{resource: r.Resource, verbs: []string{"get", "patch"}})
	}
	return append(rights, right{resource: schema.GroupResource{Group: "kubevirt.io", Resource: "virtualmachines/status"}, verbs: []string{"patch"}})
}

// missing names the rights that the user does not have, and the commands that give
// them; nil if there are none, or nobody says.
func (s *revisionSession) missing(ctx context.Context, rights []right) error {
	var grants []crdmigrator.Grant
	for _, r := range rights {
		g := crdmigrator.Grant{Resource: r.resource}
		if !r.cluster {
			g.Namespace = s.scope.namespace
		}
		var verbs []string
		for _, verb := range r.verbs {
			if s.denied(ctx, g, verb) {
				verbs = append(verbs, verb)
			}
		}
		if g.Verb = strings.Join(verbs, ","); g.Verb != "" && s.served(ctx, r.resource.Group) {
			grants = append(grants, g)
		}
	}
	if len(grants) == 0 {
		return nil
	}
	user := s.whoAmI(ctx)
	var lacks, commands []string
	for _, g := range grants {
		lacks, commands = append(lacks, g.String()), append(commands, g.Command(user))
	}
	return &problem{
		reason:  report.ReasonForbidden,
		message: fmt.Sprintf("%s may not %s", user, strings.Join(lacks, ", nor ")),
		remedy:  "an administrator grants it:\n  " + strings.Join(commands, "\n  "),
	}
}

// denied asks the API server, which knows all of its authorizers.
func (s *revisionSession) denied(ctx context.Context, g crdmigrator.Grant, verb string) bool {
	resource, subresource, _ := strings.Cut(g.Resource.Resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: g.Namespace, Verb: verb, Group: g.Resource.Group, Resource: resource, Subresource: subresource,
		}},
	}
	err := s.client.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").Body(review).Do(ctx).Into(review)
	return err == nil && !review.Status.Allowed
}

// served: nobody can be granted what the cluster does not have.
func (s *revisionSession) served(ctx context.Context, group string) bool {
	return s.client.Get().AbsPath("/apis", group).Do(ctx).Error() == nil
}
