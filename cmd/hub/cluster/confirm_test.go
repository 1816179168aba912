package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// reviewer answers access reviews.
type reviewer struct {
	client.Client
	allowed bool
	err     error
	reviews int
	last    authorizationv1.SelfSubjectAccessReviewSpec
}

func (r *reviewer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	r.reviews++
	review, ok := o.(*authorizationv1.SelfSubjectAccessReview)
	if !ok {
		return fmt.Errorf("%T is no review", o)
	}
	r.last = review.Spec
	review.Status.Allowed = r.allowed
	return r.err
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// denied is the answer of an authorizer.
func denied() error {
	return apierrors.NewForbidden(leases, "managed-cluster-lease", errors.New(`User "agent" cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "c1"`))
}

// TestConfirmations: an error is final when the hub confirms it, and not before.
//
// Matrix: H83.
func TestConfirmations(t *testing.T) {
	starts := errors.New(`selfsubjectaccessreviews.authorization.k8s.io is forbidden`)
	type step struct {
		after   time.Duration
		allowed bool
		review  error
		final   bool
	}
	cases := map[string]struct {
		reason string
		err    error
		steps  []step
	}{
		"a permission is missing": {
			"access reviews say so for 5 s", denied(),
			[]step{{}, {after: 2 * time.Second}, {after: 2 * time.Second}, {after: 2 * time.Second, final: true}},
		},
		"an API server starts": {
			"it denies the reviews as well", denied(),
			[]step{{review: starts}, {after: 3 * time.Second, review: starts}, {after: 3 * time.Second, review: starts}, {after: time.Hour, review: starts}},
		},
		"an API server has read one half of its roles": {
			"reviews are allowed by ClusterRoles that it reads before the Roles", denied(),
			[]step{{}, {after: time.Second}, {after: time.Second, allowed: true}, {after: 2 * time.Second}, {after: 2 * time.Second}, {after: 2 * time.Second}, {after: 2 * time.Second, final: true}},
		},
		"an API server starts now and then": {
			"the denials have other answers between them", denied(),
			[]step{{}, {after: time.Minute}, {after: time.Minute}, {after: time.Minute}},
		},
		"passes take long": {
			"a row of denials has gaps of up to half a minute", denied(),
			[]step{{}, {after: 20 * time.Second}, {after: 20 * time.Second, final: true}},
		},
		"a kind is not served": {
			"an API server that starts does not list all CRDs", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Widget"}},
			[]step{{}, {after: 2 * time.Second}, {after: 4 * time.Second, final: true}},
		},
		"admission denies": {
			"no review is needed", apierrors.NewForbidden(leases, "a", errors.New("exceeded quota")),
			[]step{{final: true}},
		},
		"a failure": {"it says what to do", cluster.Fail(cluster.ReasonExists, "it exists"), []step{{final: true}}},
		"a busy hub": {
			"it may answer the next request", apierrors.NewTooManyRequestsError("busy"),
			[]step{{}, {after: time.Hour}, {after: time.Hour}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c cluster.Confirmations
				hub := &reviewer{}
				for i, s := range tc.steps {
					time.Sleep(s.after)
					hub.allowed, hub.err = s.allowed, s.review
					if got := c.Final(t.Context(), hub, fmt.Errorf("pass: %w", tc.err)); got != s.final {
						t.Fatalf("step %d: final %t, want %t: %s", i, got, s.final, tc.reason)
					}
				}
			})
		})
	}
}

// TestConfirmationsReview: the review is about the object that was denied, and many clusters share one.
func TestConfirmationsReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cluster.Confirmations
		hub := &reviewer{}
		for range 300 {
			c.Final(t.Context(), hub, denied())
		}
		if hub.reviews != 1 {
			t.Errorf("%d reviews, want one for the pass", hub.reviews)
		}
		want := authorizationv1.ResourceAttributes{Verb: "get", Group: leases.Group, Resource: "leases", Namespace: "c1", Name: "managed-cluster-lease"}
		if got := hub.last.ResourceAttributes; got == nil || *got != want {
			t.Errorf("the review is about %+v, want %+v", hub.last, want)
		}
		c.Final(t.Context(), hub, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(`User "agent" cannot get path "/apis"`)))
		if got := hub.last.NonResourceAttributes; got == nil || got.Path != "/apis" || got.Verb != "get" {
			t.Errorf("the review is about %+v, want path /apis", hub.last)
		}
	})
}
