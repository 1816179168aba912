package rejoin

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/klusterlet"
	"github.com/godwit-dev/godwit/cmd/hub/resource"
)

// tokenLifetime is how long a bootstrap token is valid. The account ends with the last step, and a pass issues another token in time.
const tokenLifetime = time.Hour

// act carries a step out. It returns what the step waits for.
func (r *Rejoin) act(ctx context.Context, s Step, f Facts) (waits string, err error) {
	switch s {
	case Accept:
		return "", r.accept(ctx, f)
	case Protect:
		return "", r.edit(ctx, f, func(record *Record) { record.protect(f.Klusterlet) })
	case AwaitOperator:
		return "the klusterlet operator of the cluster has not observed Klusterlet " + klusterlet.Name, nil
	case AwaitImport:
		return "the import controller of the target hub has not written Secret " + r.Cluster + "/" + resource.ImportSecret(r.Cluster), nil
	case Bootstrap:
		return "", r.bootstrap(ctx, f)
	case OneHub:
		return "", r.edit(ctx, f, func(record *Record) {
			record.Secrets, _ = klusterlet.KnowsSeveral(f.Klusterlet)
			klusterlet.SetOneHub(f.Klusterlet)
		})
	case Await:
		return r.await(ctx, f)
	case Release:
		for _, w := range f.Released() {
			err = errors.Join(err, r.release(ctx, w))
		}
		return "the work agent of the cluster has not removed its finalizer from the AppliedManifestWorks of the lost hub", err
	case Handover:
		return "", r.writeToken(ctx, f, "")
	case Clean:
		return "", r.clean(ctx, f)
	case Restore:
		return "", r.edit(ctx, f, func(record *Record) { record.restore(f.Klusterlet) })
	case Finish:
		return r.finish(ctx, f)
	case Done:
	}
	return "", nil
}

// accept creates the ManagedCluster, or takes the one that is there: a user has created it with its labels, or a migration did.
func (r *Rejoin) accept(ctx context.Context, f Facts) error {
	if f.Managed == nil {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: r.Cluster}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
		cluster.MarkOwned(mc, f.own(), f.UID)
		if err := r.Target.Create(ctx, mc); err != nil {
			return fmt.Errorf("create ManagedCluster %s at the target hub: %w", r.Cluster, err)
		}
		return nil
	}
	original, err := cluster.OriginalOf(f.Managed, f.Mark())
	if err != nil {
		return err
	}
	if f.Imports && original.Has(cluster.AnnotationNoAutoImport) { // before the import controller looks for a token
		if err := r.hub(f).RemoveToken(ctx, r.Cluster); err != nil {
			return err
		}
	}
	if err := cluster.Patch(ctx, r.Target, f.Managed, func() error {
		if f.mark() == "" {
			cluster.MarkOwned(f.Managed, f.own(), f.UID)
		}
		f.Managed.Spec.HubAcceptsClient = true
		for _, name := range f.configuring() {
			original.Restore(f.Managed, name)
		}
		return original.Save(f.Managed)
	}); err != nil {
		return fmt.Errorf("accept ManagedCluster %s at the target hub: %w", r.Cluster, err)
	}
	return nil
}

// edit changes the Klusterlet, with the record of what it had.
func (r *Rejoin) edit(ctx context.Context, f Facts, change func(*Record)) error {
	k, record := f.Klusterlet, f.Record
	if err := cluster.Patch(ctx, r.Own, k, func() error {
		change(&record)
		return record.save(k)
	}); err != nil {
		return fmt.Errorf("change Klusterlet %s of %s: %w", k.Name, r.Cluster, err)
	}
	return nil
}

// bootstrap gives the cluster a bootstrap kubeconfig whose account may register it.
func (r *Rejoin) bootstrap(ctx context.Context, f Facts) error {
	if f.Imports {
		return r.writeBootstrap(ctx, f, f.Imported)
	}
	h := r.hub(f)
	if _, err := h.GrantRegistration(ctx); err != nil {
		return err
	}
	token, err := h.IssueShortToken(ctx, tokenLifetime)
	if err != nil {
		return err
	}
	return r.writeToken(ctx, f, token)
}

// writeToken writes the bootstrap kubeconfig of the target hub with a token, or without credentials.
func (r *Rejoin) writeToken(ctx context.Context, f Facts, token string) error {
	kubeconfig, err := cluster.Kubeconfig(r.Address.URL, r.Address.CABundle, token)
	if err != nil {
		return err
	}
	return r.writeBootstrap(ctx, f, kubeconfig)
}

// writeBootstrap writes the bootstrap kubeconfig of the cluster. Its agent registers again when server, CA or the name of the hub are
// others than before.
func (r *Rejoin) writeBootstrap(ctx context.Context, f Facts, kubeconfig []byte) error {
	s, err := r.secret(ctx, klusterlet.NamespaceOf(f.Klusterlet), klusterlet.OwnSecret)
	if err != nil {
		return err
	}
	if s.UID == "" {
		s.Data = map[string][]byte{cluster.KubeconfigKey: kubeconfig}
		err = r.Own.Create(ctx, s)
	} else {
		err = cluster.Patch(ctx, r.Own, s, func() error {
			if s.Data == nil {
				s.Data = map[string][]byte{}
			}
			s.Data[cluster.KubeconfigKey] = kubeconfig
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("write Secret %s/%s of %s: %w", s.Namespace, s.Name, r.Cluster, err)
	}
	return nil
}

// await approves the request of the cluster, and waits for it at the target hub.
func (r *Rejoin) await(ctx context.Context, f Facts) (waits string, err error) {
	result, err := r.hub(f).AwaitRegistration(ctx, []string{r.Cluster}, &r.leases)
	if err == nil {
		waits, err = r.outcome(result)
	}
	switch {
	case err != nil:
		return "", err
	case waits == "" && !f.isRegistered():
		return "the agent of the cluster has not stored its certificate", nil
	case waits == "":
		r.arrived = true
	case !f.isObserved():
		waits += "; the klusterlet operator of the cluster has not observed Klusterlet " + klusterlet.Name
	}
	return waits, nil
}

// outcome returns what the result of a pass means for the only cluster.
func (r *Rejoin) outcome(result cluster.Result) (waits string, err error) {
	if failed := result.Failed[r.Cluster]; failed != nil {
		return "", failed
	}
	if gone, ok := result.Gone[r.Cluster]; ok {
		return "", cluster.Fail(cluster.ReasonNotPrepared, "%s", gone)
	}
	return result.Waiting[r.Cluster], nil
}

// clean deletes what a migration has left on the cluster.
func (r *Rejoin) clean(ctx context.Context, f Facts) error {
	for _, o := range r.remains(&f) {
		if err := client.IgnoreNotFound(r.Own.Delete(ctx, o)); err != nil {
			return fmt.Errorf("delete %s of %s: %w", cluster.Name(r.Own, o), r.Cluster, err)
		}
	}
	return nil
}

// finish ends the bootstrap account, and then removes the marks at the target hub. That of the ManagedCluster comes last.
func (r *Rejoin) finish(ctx context.Context, f Facts) (waits string, err error) {
	h := r.hub(f)
	if err := h.RevokeRegistration(ctx); err != nil {
		return "", err
	}
	result, err := h.FinishMoved(ctx, []string{r.Cluster})
	if err != nil {
		return "", err
	}
	return r.outcome(result)
}
