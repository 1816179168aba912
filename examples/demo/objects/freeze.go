package objects

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/test/policy"
)

// The policy and the one object it denies writes to.
const (
	policyName      = "change-freeze"
	frozenNamespace = "billing"
	frozenName      = "route-42"
	frozen          = frozenNamespace + "/" + frozenName
)

var freeze = policy.Policy{
	Name: policyName, Group: group, Resource: "httproutes", Names: []string{frozenName},
	Validations: []admissionv1.Validation{{
		Expression: fmt.Sprintf("object.metadata.namespace != %q", frozenNamespace),
		Message:    "no changes before the audit is over",
	}},
}

// deny returns when the API server enforces the policy.
func (d *demo) deny(ctx context.Context) error {
	if err := freeze.Create(ctx, d.Clients); err != nil {
		return err
	}
	return policy.Await(ctx, true, d.probe)
}

// relax makes the policy record what it would deny, and returns when the API
// server does so.
func (d *demo) relax(ctx context.Context) error {
	if err := freeze.Audit(ctx, d.Clients); err != nil {
		return err
	}
	return policy.Await(ctx, false, d.probe)
}

// probe sends the same write as godwit, as a dry run.
func (d *demo) probe(ctx context.Context) error {
	_, err := d.Objects.Resource(resource("httproutes", newVersion)).Namespace(frozenNamespace).
		Patch(ctx, frozenName, types.MergePatchType, []byte("{}"), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}
