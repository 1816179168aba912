package agent

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// TestStore: the next process reads what this one has stored, and the key goes when no further
// command comes.
func TestStore(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	c := fake.NewClientBuilder().Build()
	o := Options{Client: c, Hub: "hub1", Namespace: "godwit", Clock: clock}
	a := New(o)
	key, err := message.NewOpeningKey()
	if err != nil {
		t.Fatal(err)
	}
	want := task{Role: hub.Target, Inbox: hub.Inbox{Last: hub.Command{Stage: api.PhaseDeploying, Attempt: 9}}, Until: clock.Now().Add(5 * time.Minute)}
	m := a.migration("uid")
	if err := a.update(t.Context(), m, func(s *stored) bool {
		s.task, s.key = want, &key
		return true
	}); err != nil {
		t.Fatal(err)
	}
	mustList := func() stored {
		t.Helper()
		all, _, err := New(o).store.list(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("%d tasks are stored: %v", len(all), err)
		}
		return all["uid"]
	}
	if got := mustList(); got.task.Inbox.Last.Attempt != 9 || got.key == nil || !slices.Equal(got.key.Key().Bytes(), key.Key().Bytes()) {
		t.Errorf("%+v is stored, want attempt 9 with the key", got.task)
	}
	clock.Step(5*time.Minute + keyGrace - time.Second)
	a.dropKeys(t.Context())
	if mustList().key == nil {
		t.Error("the key is gone before its time")
	}
	clock.Step(time.Second)
	a.dropKeys(t.Context())
	if got := mustList(); got.key != nil || got.task.Inbox.Last.Attempt != 9 {
		t.Errorf("%+v is stored, with a key: %v; want attempt 9 alone", got.task, got.key != nil)
	}
}

// TestStoreRecovers: an answer that was lost, and a Secret that a user has deleted, do not keep
// the agent from storing.
func TestStoreRecovers(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	o := Options{Client: c, Hub: "hub1", Namespace: "godwit"}
	a := New(o)
	m := a.migration("uid")
	store := func(attempt int64) error {
		return a.update(t.Context(), m, func(s *stored) bool {
			s.task.Inbox.Last.Attempt = attempt
			return true
		})
	}
	mustRecover := func(what string, attempt int64) {
		t.Helper()
		if err := store(attempt); err == nil {
			t.Errorf("%s: the first attempt passes, want the error that makes Kafka deliver again", what)
		}
		if err := store(attempt); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := store(1); err != nil {
		t.Fatal(err)
	}
	m.stored.version = ""
	mustRecover("the answer to the creation was lost", 2)
	m.stored.version = "1"
	mustRecover("the answer to an update was lost", 3)
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "godwit", Name: secretPrefix + "uid"}, secret); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	mustRecover("a user has deleted the Secret", 4)
	all, _, err := New(o).store.list(t.Context())
	if err != nil || all["uid"].task.Inbox.Last.Attempt != 4 {
		t.Errorf("%+v is stored, %v; want attempt 4", all["uid"].task, err)
	}
}
