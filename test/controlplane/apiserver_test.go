package controlplane_test

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// skipUnsupported skips the test on systems without UTS namespaces, and fails on every other error.
func skipUnsupported(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestSecondServer: a second server has a lease of its own, and a pause does not affect the first server.
func TestSecondServer(t *testing.T) {
	began := time.Now()
	second, err := shared.StartSecond(t.Context(), "second")
	skipUnsupported(t, err)
	defer func() { _ = second.Stop() }() // TestStopLeavesNothing checks the error
	t.Logf("started in %s", time.Since(began).Round(time.Millisecond))

	if _, err := shared.StartSecond(t.Context(), "second"); err == nil {
		t.Error("a third server started with the identity of the second, want an error")
	}
	namespace := createNamespace(t, shared.Config())
	namespaces := clientsFor(t, second.Config()).CoreV1().Namespaces()
	if _, err := namespaces.Get(t.Context(), namespace, metav1.GetOptions{}); err != nil {
		t.Errorf("read through the second server an object written through the first: %v", err)
	}

	first, err := shared.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leases, err := clientsFor(t, shared.Config()).CoordinationV1().Leases(metav1.NamespaceSystem).List(t.Context(),
		metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver"})
	if err != nil {
		t.Fatal(err)
	}
	known := sets.New[string]()
	for _, lease := range leases.Items {
		known.Insert(lease.Name)
	}
	if want := sets.New(first, second.Identity()); !known.Equal(want) || len(want) != 2 {
		t.Errorf("leases are %v, want one for each of %v", sets.List(known), sets.List(want))
	}

	if err := second.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := namespaces.Get(ctx, namespace, metav1.GetOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request to the paused server: got %v, want it to time out", err)
	}
	if _, err := clientsFor(t, shared.Config()).CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err != nil {
		t.Errorf("a request to the first server while the second is paused: %v", err)
	}
	if err := second.Continue(); err != nil {
		t.Fatal(err)
	}
	if _, err := namespaces.Get(t.Context(), namespace, metav1.GetOptions{}); err != nil {
		t.Errorf("after the pause: %v", err)
	}

	for range 2 {
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestSecondServerTrustsUsersOfTheFirst: both servers accept a token, because they share key and issuer.
func TestSecondServerTrustsUsersOfTheFirst(t *testing.T) {
	second, err := shared.StartSecond(t.Context(), "trusting")
	skipUnsupported(t, err)
	defer func() { _ = second.Stop() }() // TestStopLeavesNothing checks the error
	user, err := shared.AddUser("root-by-group", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	user.Host = second.Config().Host
	if _, err := clientsFor(t, user).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("certificate user: %v", err)
	}
	name, bearer := tokenUser(t, shared.Config())
	bearer.Host = second.Config().Host
	review, err := clientsFor(t, bearer).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), selfReview(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := review.Status.UserInfo.Username, "system:serviceaccount:default:"+name; got != want {
		t.Errorf("user of the first server's token on the second = %q, want %q", got, want)
	}
}
