package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/godwit-dev/godwit/cmd/hub"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// mostClusters is what admission allows in one migration.
const mostClusters = 5000

// clusters have the longest names.
func clusters(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%05d", strings.Repeat("c", 57), i)
	}
	return names
}

// sink is a transport that keeps what is sent.
type sink struct{ sent []message.Envelope }

func (s *sink) Send(_ context.Context, _, _ string, e message.Envelope) error {
	s.sent = append(s.sent, e)
	return nil
}

func (s *sink) Receive(ctx context.Context, _ string, _ []string, _ func(context.Context, string, message.Envelope) error) error {
	<-ctx.Done()
	return ctx.Err()
}

func newIdentity(t *testing.T) message.Identity {
	t.Helper()
	own, err := message.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// TestLargestReportFits: the report on 5,000 clusters, of which each has failed with a long
// message, fits into a message and names each of them.
//
// Matrix: H23.
func TestLargestReportFits(t *testing.T) {
	names := clusters(mostClusters)
	p := progress{report: hub.Report{Stage: api.PhaseCleaning, Attempt: 30, Finished: true, ClusterErrors: map[string]hub.Failure{}}}
	for i, name := range names {
		if i%2 == 0 {
			p.report.Done = append(p.report.Done, name)
			continue
		}
		p.report.ClusterErrors[name] = hub.Failure{Reason: "AlreadyExists", Message: strings.Repeat("ä", 400)}
	}
	to := &sink{}
	own := newIdentity(t)
	a := New(Options{Hub: "hub1", Identity: own, Transport: to})
	if err := a.send(t.Context(), a.migration("uid"), p); err != nil {
		t.Fatal(err)
	}
	_, data, err := message.Read(to.sent[0], message.ManagerName, own.Key(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := message.Decode[message.StatusBundle](data)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Done)+len(b.ClusterErrors) != mostClusters {
		t.Errorf("%d clusters are done and %d have failed, want %d in all", len(b.Done), len(b.ClusterErrors), mostClusters)
	}
	for name, text := range b.ClusterErrors {
		if !strings.HasSuffix(text, "ä…") || strings.ContainsRune(text, '\uFFFD') {
			t.Fatalf("%s has failed with %q", name, text)
		}
	}
}

// TestReportOfGoneClustersFits: a user has deleted every cluster of the largest migration.
func TestReportOfGoneClustersFits(t *testing.T) {
	p := progress{report: hub.Report{Stage: api.PhaseCleaning, Attempt: 30, Finished: true, Done: clusters(mostClusters), Gone: map[string]string{}}}
	for _, name := range p.report.Done {
		p.report.Gone[name] = "the source hub has no ManagedCluster " + name + " any more: a user has deleted it"
	}
	a := New(Options{Hub: "hub1", Identity: newIdentity(t), Transport: &sink{}})
	if err := a.send(t.Context(), a.migration("uid"), p); err != nil {
		t.Fatal(err)
	}
}

// TestLargestTaskFits: a Secret has at most 1 MiB.
//
// Matrix: H23.
func TestLargestTaskFits(t *testing.T) {
	names := clusters(mostClusters)
	command := hub.Command{Stage: api.PhaseCleaning, Attempt: 30}
	for _, action := range []hub.Action{hub.RemovePauses, hub.RevertBootstrap, hub.AwaitReturn, hub.DeleteMoved} {
		command.Orders = append(command.Orders, hub.Order{Action: action, Clusters: names})
	}
	report := hub.Report{Stage: command.Stage, Attempt: command.Attempt, Finished: true, ClusterErrors: map[string]hub.Failure{}}
	for i, name := range names {
		report.ClusterErrors[name] = hub.Failure{Reason: "Timeout", Message: fmt.Sprintf("the cluster %s has not renewed its lease %d", name, i)}
	}
	want := task{
		Role: hub.Source, Inbox: hub.Inbox{Last: command}.Answer(report),
		Source: &message.SourceBundle{Command: command, ManagedClusters: names}, Until: time.Now(),
	}
	data, err := want.encode()
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 1<<20 {
		t.Errorf("the task has %d bytes, more than a Secret takes", len(data))
	}
	got, err := decodeTask(data)
	if err != nil {
		t.Fatal(err)
	}
	if !got.finished() || len(got.Source.Command.Orders) != 4 || !slices.Equal(slices.Sorted(maps.Keys(got.Inbox.Report.ClusterErrors)), names) {
		t.Error("the task that is read is not the one that was written")
	}
	if _, err := decodeTask(data[:len(data)/2]); err == nil {
		t.Error("half a task was read")
	}
}

// TestKeepsKey: a key is kept over all attempts, and deleted when nothing is left to open.
//
// Matrix: H60.
func TestKeepsKey(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	failed := &hub.Report{Finished: true, ClusterErrors: map[string]hub.Failure{"c1": {Message: "Timeout"}}}
	cases := map[string]struct {
		reason string
		stage  api.Phase
		report *hub.Report
		after  time.Duration
		want   bool
	}{
		"Validating":       {"The manager gets the public key.", api.PhaseValidating, nil, 0, true},
		"ValidatingDone":   {"The bootstrap kubeconfig is to come.", api.PhaseValidating, &hub.Report{Finished: true}, 0, true},
		"ValidatingFailed": {"No command follows.", api.PhaseValidating, failed, 0, false},
		"Initializing":     {"The bootstrap kubeconfig is opened.", api.PhaseInitializing, nil, 0, true},
		"Deploying":        {"Resources are opened.", api.PhaseDeploying, failed, 0, true},
		"Registering":      {"Nothing is sealed any more.", api.PhaseRegistering, nil, 0, false},
		"Rollbacking":      {"Nothing is sealed any more.", api.PhaseRollbacking, nil, 0, false},
		"Cleaning":         {"Nothing is sealed any more.", api.PhaseCleaning, nil, 0, false},
		"NextIsLate":       {"The manager may have restarted.", api.PhaseDeploying, nil, keyGrace - time.Second, true},
		"NoNext":           {"The migration has ended without a command to this hub.", api.PhaseValidating, &hub.Report{Finished: true}, keyGrace, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			one := task{Inbox: hub.Inbox{Last: hub.Command{Stage: tc.stage, Attempt: 1}, Report: tc.report}, Until: now}
			if got := one.keepsKey(now.Add(tc.after)); got != tc.want {
				t.Errorf("%s\nkeeps the key: %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestEnds: a report arrives before the phase ends, and a command that is sent late has time.
func TestEnds(t *testing.T) {
	now := time.Now()
	for left, want := range map[time.Duration]time.Duration{
		0:                54 * time.Second,
		-time.Hour:       54 * time.Second,
		90 * time.Second: 81 * time.Second,
		5 * time.Minute:  5*time.Minute - maxReportReserve,
		24 * time.Hour:   24*time.Hour - maxReportReserve,
	} {
		if got := commandDeadline(now, left).Sub(now); got != want {
			t.Errorf("with %s left the command ends after %s, want %s", left, got, want)
		}
	}
}

// TestHeld: bundles without a command take bounded memory, and the oldest give way.
//
// Matrix: H23, H57.
func TestHeld(t *testing.T) {
	now := time.Now()
	bundle := func(uid string, size int, left time.Duration) heldBundle {
		return heldBundle{migration: uid, envelope: message.Envelope{Value: make([]byte, size)}, until: now.Add(left)}
	}
	var h held
	h.add(bundle("expired", 10, time.Second), now)
	h.add(bundle("first", 1000, time.Hour), now.Add(time.Minute))
	for range 100 {
		h.add(bundle("flood", maxHeld/50, time.Hour), now.Add(time.Minute))
		if h.bytes > maxHeld {
			t.Fatalf("%d bytes are held, want at most %d", h.bytes, maxHeld)
		}
	}
	if got := len(h.take("expired")) + len(h.take("first")); got != 0 {
		t.Errorf("%d bundles of the oldest are held, want none", got)
	}
	h.add(bundle("last", 1000, time.Hour), now.Add(time.Minute))
	if got := len(h.take("last")); got != 1 {
		t.Errorf("%d bundles of the newest are held, want 1", got)
	}
	if got := len(h.take("last")); got != 0 {
		t.Errorf("%d bundles are held after they were taken", got)
	}
	if got := len(h.take("flood")); got == 0 || h.bytes != 0 {
		t.Errorf("%d bundles were held, and %d bytes are", got, h.bytes)
	}
}

// TestWhatFailsIsNotDone: an order is executed only for clusters for which the ones before
// were done, and a cluster is done when the last order for it is.
func TestWhatFailsIsNotDone(t *testing.T) {
	script := map[hub.Action]string{hub.StopAccepting: "c2"}
	var executed []string
	w := scripted(t, hub.Target, []hub.Order{
		{Action: hub.StopAccepting, Clusters: []string{"c1", "c2"}}, {Action: hub.DeleteCreated, Clusters: []string{"c1", "c2"}},
	}, func(action hub.Action, names []string) result {
		executed = append(executed, fmt.Sprint(action, names))
		r := newResult()
		for _, name := range names {
			if script[action] == name {
				r.Failed[name] = &cluster.Error{Reason: cluster.ReasonAPI, Message: "no"}
				continue
			}
			r.Done = append(r.Done, name)
		}
		return r
	})
	w.execute(logr.NewContext(t.Context(), logr.Discard()))
	if want := []string{"StopAccepting[c1 c2]", "DeleteCreated[c1]"}; !slices.Equal(executed, want) {
		t.Errorf("executed %v, want %v", executed, want)
	}
	if r := w.migration.stored.task.Inbox.Report; r == nil || !r.Finished || !slices.Equal(r.Done, []string{"c1"}) || r.ClusterErrors["c2"] == (hub.Failure{}) || r.Error != (hub.Failure{}) {
		t.Errorf("the report is %+v, want c1 done and c2 failed", r)
	}
}

// TestLate: what is not done when a command ends has failed, with what it was waiting for.
func TestLate(t *testing.T) {
	w := scripted(t, hub.Target, []hub.Order{{Action: hub.AwaitRegistration, Clusters: []string{"c1", "c2", "c3"}}}, func(hub.Action, []string) result {
		r := newResult()
		r.Done = []string{"c1"}
		r.Waiting["c2"], r.Waiting["c3"] = "its CSR is not approved", notArrived
		return r
	})
	w.task.Until = time.Now().Add(-time.Second)
	w.execute(logr.NewContext(t.Context(), logr.Discard()))
	r := w.migration.stored.task.Inbox.Report
	if c3 := r.ClusterErrors["c3"]; c3.Reason != "ObjectsNotArrived" {
		t.Errorf("c3 has failed with %q, want a reason for objects that have not arrived", c3)
	}
	if !slices.Equal(r.Done, []string{"c1"}) || r.ClusterErrors["c2"] != (hub.Failure{Reason: "NotInTime", Message: "AwaitRegistration: its CSR is not approved"}) {
		t.Errorf("the report is %+v, want c1 done, and c2 failed with what it waits for", r)
	}
}

// TestUnknownAction: an agent that is older than the manager says so.
//
// Matrix: H43.
func TestUnknownAction(t *testing.T) {
	w := scripted(t, hub.Source, []hub.Order{{Action: "TurnAround"}}, nil)
	w.passOf = w.sourcePass
	w.execute(logr.NewContext(t.Context(), logr.Discard()))
	if r := w.migration.stored.task.Inbox.Report; r == nil || r.Error.Reason != "ActionUnknown" || !strings.Contains(r.Error.Message, "upgrade the agent") {
		t.Errorf("the report is %+v", r)
	}
}

// TestRetries: an error of the API server that may end does not end the command.
func TestRetries(t *testing.T) {
	attempts := 0
	w := scripted(t, hub.Target, []hub.Order{{Action: hub.RevokeRegistration}}, nil)
	w.passOf = func(hub.Action) (pass, bool) {
		return passOfMigration(func(context.Context) (string, error) {
			if attempts++; attempts < 3 {
				return "", errors.New("the API server does not answer")
			}
			return "", nil
		}), true
	}
	w.execute(logr.NewContext(t.Context(), logr.Discard()))
	if r := w.migration.stored.task.Inbox.Report; attempts != 3 || r == nil || r.Error != (hub.Failure{}) {
		t.Errorf("%d attempts, and the report is %+v", attempts, r)
	}
}
