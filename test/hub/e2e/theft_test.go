package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/csr"
	"github.com/godwit-dev/godwit/test/hub/klusterlet"
	"github.com/godwit-dev/godwit/test/hub/ocm"
)

// stolen returns a client with the bootstrap token of hub2 that hub1 has, as soon as hub1 has one.
func stolen(t *testing.T, in *installation) client.Client {
	t.Helper()
	var thief client.Client
	await(t, "the bootstrap token of hub2 at hub1", func(ctx context.Context) error {
		secrets := &corev1.SecretList{}
		if err := in.hub1.Client.List(ctx, secrets, client.InNamespace(bootstrapNamespace)); err != nil {
			return err
		}
		for _, secret := range secrets.Items {
			config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
			if err != nil || config.Host != in.hub2.Config().Host {
				continue
			}
			thief, err = client.New(config, client.Options{Scheme: ocm.Scheme(), Mapper: in.hub2.Client.RESTMapper()})
			return err
		}
		return errors.New("no Secret has it")
	})
	return thief
}

// TestTheft: with the bootstrap token of a migration, hub1 requests the certificate of a cluster that hub2 has. The controllers of Open
// Cluster Management do not approve it, the agent of hub2 denies it, the migration names it, and its cluster moves. After the end, the
// token requests nothing.
//
// Matrix: H96.
func TestTheft(t *testing.T) {
	in := install(t)
	const name, prod = "theft-1", "theft-prod"
	victim, err := in.spoke.Import(t.Context(), in.hub2, prod)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := victim.Stop(); err != nil {
			t.Error(err)
		}
	})
	awaitRegistered(t, in.hub2, prod)
	c := importSites(t, in.fleet, name)[0]
	before := onHub(t, in.hub1, name)
	m := in.migrate(t, "theft", nil, name)
	thief := stolen(t, in)

	theft, err := klusterlet.NewSigningRequest("theft-of-prod", prod)
	if err != nil {
		t.Fatal(err)
	}
	if err := thief.Create(t.Context(), theft); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.hub2.Client.Delete(context.WithoutCancel(t.Context()), theft) })
	m.mustReach(api.PhaseCompleted)
	awaitRegistered(t, in.hub2, name)
	mustHaveMoved(t, in.fleet, before, c)

	if err := in.hub2.Client.Get(t.Context(), client.ObjectKeyFromObject(theft), theft); err != nil {
		t.Fatal(err)
	}
	if len(theft.Status.Certificate) > 0 || len(theft.Status.Conditions) != 1 || theft.Status.Conditions[0].Type != certificatesv1.CertificateDenied || theft.Status.Conditions[0].Reason != csr.DeniedByMigration {
		t.Errorf("the request for %s has a certificate: %v, and conditions %+v", prod, len(theft.Status.Certificate) > 0, theft.Status.Conditions)
	}
	m.mustHave(api.ConditionRequestDenied, metav1.ConditionTrue, api.ReasonRequestDenied)
	m.mustHave(api.ConditionReady, metav1.ConditionTrue, api.ReasonSucceeded)
	m.awaitEvent(api.ReasonRequestDenied.Name, theft.Name, prod)

	requests := &certificatesv1.CertificateSigningRequestList{}
	if err := in.hub2.Client.List(t.Context(), requests, client.MatchingLabels{csrLabel: name}); err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, r := range requests.Items {
		if len(r.Status.Conditions) > 0 && r.Status.Conditions[0].Reason == csr.ApprovedByMigration && strings.Contains(r.Spec.Username, "godwit-migration-") {
			own++
		}
	}
	if own == 0 {
		t.Errorf("no request of %s was approved by the agent: %+v", name, requests.Items)
	}

	again, err := klusterlet.NewSigningRequest("theft-again", prod)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the token to request nothing after the migration", func(ctx context.Context) error {
		err := thief.Create(ctx, again)
		switch {
		case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
			return nil
		case err == nil:
			err = in.hub2.Client.Delete(ctx, again) // an authorizer reads a binding for a moment after its end
			again.ResourceVersion, again.UID = "", ""
		}
		return fmt.Errorf("it does: %w", err)
	})
}

// awaitEvent waits for an event of the migration with a reason and some words.
func (m *migration) awaitEvent(reason string, words ...string) {
	m.t.Helper()
	await(m.t, "event "+reason, func(ctx context.Context) error {
		list := &eventsv1.EventList{}
		if err := m.in.hub1.Client.List(ctx, list, client.InNamespace(m.object.Namespace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Regarding.UID != m.object.UID || e.Reason != reason {
				continue
			}
			for _, word := range words {
				if !strings.Contains(e.Note, word) {
					return fmt.Errorf("it does not name %s: %s", word, e.Note)
				}
			}
			return nil
		}
		return errors.New("there is none")
	})
}
