package clusterrejoin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/godwit-dev/godwit"
	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/direct"
	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
	"github.com/godwit-dev/godwit/cmd/hub/preflight"
	"github.com/godwit-dev/godwit/cmd/hub/rejoin"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterpermission"
	"github.com/godwit-dev/godwit/cmd/internal/cluster/clusterreport"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/permission"
	"github.com/godwit-dev/godwit/cmd/internal/render"
)

// Move is a move by the context of the cluster.
type Move struct {
	App    *frame.App
	Output frame.Output
	// Writes is false for a dry run.
	Writes bool
	// Own is the connection to the cluster, and Target that to the hub.
	Own, Target *frame.Connection
	Rejoin      *rejoin.Rejoin

	began time.Time
	facts rejoin.Facts
	step  rejoin.Step
	waits string
	err   error
}

// Plan reads both sides, and refuses what is blocked. It returns nil if nothing is to do.
func (m *Move) Plan(ctx context.Context) (frame.Change, error) {
	m.began = m.App.Clock.Now()
	if err := m.Target.Missing(ctx, m.onTarget()); err != nil {
		return nil, frame.Refuse(err)
	}
	refused, err := m.ask(ctx)
	switch {
	case err != nil:
		return nil, err
	case refused != nil:
		return nil, frame.Refuse(fmt.Errorf("%w; nothing was written", refused))
	}
	if err := m.Own.Missing(ctx, m.onCluster()); err != nil {
		return nil, frame.Refuse(err)
	}
	m.step = rejoin.Next(m.facts)
	switch {
	case m.facts.Done():
		m.App.Console.Printf("%s\n", m.nothing())
		return nil, m.print()
	case !m.Writes:
		m.App.Console.Printf("%sdry run: nothing was written\n", m.describe())
		return nil, m.print()
	}
	return m, nil
}

// ask reads both sides, and returns why the move is refused, if it is.
func (m *Move) ask(ctx context.Context) (refused *cluster.Error, err error) {
	if m.facts, err = m.Rejoin.Ask(ctx); err == nil {
		err = rejoin.Check(m.facts)
	}
	if err != nil && !errors.As(err, &refused) {
		return nil, m.explain(ctx, err)
	}
	return refused, nil
}

// Preflight reads both sides, and returns what blocks the move and what is at risk.
func (m *Move) Preflight(ctx context.Context) (clusterreport.Preflight, error) {
	refused, err := m.ask(ctx)
	if err != nil {
		return clusterreport.NoPreflight("", m.Rejoin.Address.URL), err
	}
	c := preflight.Cluster{Name: m.Rejoin.Cluster, Decision: preflight.Ready}
	switch works := m.facts.Evictable(); {
	case refused != nil:
		c.Decision, c.Reasons = preflight.Blocked, []godwit.Finding{{Reason: refused.Reason, Message: refused.Message}}
	case m.facts.Done():
		m.App.Console.Printf("%s\n", m.nothing())
	default:
		m.App.Console.Printf("%s", m.describe())
		if len(works) > 0 && m.Rejoin.OnEvictedWorks == api.EvictedWorksAccept {
			c.Decision = preflight.AtRisk
			c.AtRisk = []godwit.Finding{{Reason: cluster.ReasonWorkStays, Message: m.evicted(works)}}
		}
		if m.facts.Unproven != "" {
			c.Decision, c.Reasons = preflight.NotChecked, []godwit.Finding{{Reason: preflight.ReasonAddressNotChecked, Message: m.facts.Unproven}}
		}
	}
	r := preflight.Report{From: m.from(), To: m.Rejoin.Address.URL, Clusters: []preflight.Cluster{c}}
	return clusterreport.PreflightOf(r, func(preflight.Check) string { return "" }), nil
}

// onTarget are the permissions on the target hub: those of a move.
func (m *Move) onTarget() []permission.Permission {
	return clusterpermission.Move.Permissions(permission.Scope{Namespace: m.Rejoin.Namespace, Installation: m.Rejoin.Namespace})
}

// onCluster are the permissions on the cluster.
func (m *Move) onCluster() []permission.Permission {
	namespace := klusterlet.DefaultNamespace
	var applied []schema.GroupResource
	if m.facts.Klusterlet != nil {
		namespace = klusterlet.NamespaceOf(m.facts.Klusterlet)
		applied = kindsOf(m.facts.Released())
	}
	return clusterpermission.OnCluster(namespace, applied)
}

// kindsOf returns the resources that works have applied.
func kindsOf(works []*workv1.AppliedManifestWork) []schema.GroupResource {
	var all []schema.GroupResource
	for _, w := range works {
		for _, r := range w.Status.AppliedResources {
			if one := (schema.GroupResource{Group: r.Group, Resource: r.Resource}); !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return all
}

// explain names the permissions that are missing on either side.
func (m *Move) explain(ctx context.Context, err error) error {
	side := m.Target
	if failed := (*url.Error)(nil); errors.As(err, &failed) && strings.HasPrefix(failed.URL, m.Own.Config.Host) {
		side = m.Own
	}
	return side.ExplainBy(ctx, err, func(ctx context.Context) error {
		if lacks := m.Own.Missing(ctx, m.onCluster()); lacks != nil {
			return lacks
		}
		return m.Target.Missing(ctx, m.onTarget())
	})
}

// describe says what the move does, a line for each fact.
func (m *Move) describe() string {
	f := m.facts
	var text strings.Builder
	if f.Agent.Server != "" && f.Agent.Server != f.Address.URL {
		fmt.Fprintf(&text, "%s is registered at %s, which does not answer from here\n", f.Cluster, f.Agent.Server)
	}
	if migration := f.Migration(); migration != "" {
		fmt.Fprintf(&text, "migration %s has left %s half done; if its manager still runs, end it first: %s\n", migration, f.Cluster, m.App.Hint("cluster forget NAME "+f.Cluster))
	}
	if works := f.Evictable(); len(works) > 0 {
		fmt.Fprintf(&text, "%s\n", m.evicted(works))
	}
	return text.String()
}

// evicted says what becomes of what the lost hub has applied.
func (m *Move) evicted(works []string) string {
	what := "the work agent deletes it later"
	if m.facts.OnEvictedWorks == api.EvictedWorksOrphan {
		what = "it stays on the cluster, and no hub has it"
	}
	return fmt.Sprintf("ManifestWork %s of the lost hub has applied objects: %s", cluster.Few(works), what)
}

// nothing says that nothing is left to do.
func (m *Move) nothing() string {
	return fmt.Sprintf("%s is registered at %s, and nothing is left to do", m.Rejoin.Cluster, m.Target.Where())
}

// from returns the address of the lost hub; empty if it is not known any more.
func (m *Move) from() string {
	if m.facts.Agent.Server == m.Rejoin.Address.URL { // the cluster had come there before
		return ""
	}
	return m.facts.Agent.Server
}

// Question implements frame.Change.
func (m *Move) Question() (string, error) {
	address := m.Rejoin.Address.URL
	if m.facts.Imports && m.facts.Imported == nil {
		address = "the address that its import controller writes"
	}
	return fmt.Sprintf("%sMove %s from its lost hub to %s, which it reaches at %s, by its own API server %s?",
		m.describe(), m.Rejoin.Cluster, m.Target.Where(), address, m.Own.Where()), nil
}

// Run implements frame.Change.
func (m *Move) Run(ctx context.Context) {
	if m.err = direct.Prepare(ctx, m.Rejoin.Target, m.Rejoin.Namespace); m.err != nil {
		return
	}
	m.step, m.Rejoin.Progress = "", m.follow
	m.err = m.Rejoin.Run(ctx)
}

// follow prints a step when it is done, and what a step waits for when that changes.
func (m *Move) follow(step rejoin.Step, waits string) {
	if step == m.step && waits == m.waits {
		return
	}
	m.step, m.waits = step, waits
	if waits == "" {
		m.App.Console.Printf("%s: %s\n", m.Rejoin.Cluster, done[step])
		return
	}
	m.App.Console.Printf("%s: waiting: %s\n", m.Rejoin.Cluster, waits)
}

// done says what a step has done.
var done = map[rejoin.Step]string{
	rejoin.Accept:    "the target hub accepts the cluster",
	rejoin.Protect:   "the work agent evicts nothing until the end",
	rejoin.Bootstrap: "the cluster has the bootstrap kubeconfig of the target hub",
	rejoin.OneHub:    "its klusterlet uses this bootstrap kubeconfig alone",
	rejoin.Await:     "the cluster is registered at the target hub",
	rejoin.Handover:  "the bootstrap kubeconfig has no token any more",
	rejoin.Clean:     "what a migration had left on the cluster is deleted",
	rejoin.Restore:   "the Klusterlet has its former settings",
	rejoin.Finish:    "the target hub has removed the bootstrap account",
}

// End implements frame.Change.
func (m *Move) End(ctx context.Context) error {
	var refused *cluster.Error
	switch {
	case m.err == nil:
		m.step, m.waits = rejoin.Done, ""
	case errors.As(m.err, &refused):
		m.waits = refused.Message
	}
	if err := m.print(); err != nil {
		return err
	}
	return m.App.ExitAfter(ctx, frame.Ending{Err: m.err, Explain: func(ctx context.Context, err error) error {
		if refused != nil {
			return err
		}
		return m.explain(ctx, err)
	}})
}

// print prints the document.
func (m *Move) print() error {
	step, why := string(m.step), render.Cause{Message: m.waits}
	if m.step == rejoin.Done {
		step = ""
		why = render.Cause{Reason: api.ReasonSucceeded.Name, Message: fmt.Sprintf("%s is registered at %s", m.Rejoin.Cluster, m.Rejoin.Address.URL)}
	}
	d := clusterreport.Rejoined(m.Rejoin.Cluster, m.from(), m.Rejoin.Address.URL, step, why).Lasting(m.App.Clock.Since(m.began).Seconds())
	return frame.WriteDocument(m.App.Streams.Out, m.Output, d, []string{"managedcluster.cluster.open-cluster-management.io/" + m.Rejoin.Cluster}, func(w io.Writer) error {
		return clusterreport.WriteMigration(w, m.App.Style(m.App.Streams.Out, m.Output), d)
	})
}
