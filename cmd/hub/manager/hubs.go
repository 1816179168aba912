package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/godwit-dev/godwit/cmd/hub/api/v1alpha1"
	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/cmd/hub/kafka"
	"github.com/godwit-dev/godwit/cmd/hub/message"
)

// checkHubs checks that both hubs are available and that the manager reaches them. It runs before anything is sent to
// either. It waits for a heartbeat and for the broker up to maxHeartbeatAge.
func (r *Reconciler) checkHubs(ctx context.Context, m migration) (waits string, p *problem, err error) {
	if r.Direct != nil {
		p, err = r.checkAddress(ctx, m.to())
		return "", p, err
	}
	if p := checkNamespace(m.object.Namespace, r.Allowed); p != nil {
		return "", p, nil
	}
	for _, name := range []string{m.from(), m.to()} {
		if why, err := CheckAvailable(ctx, r.Reader, name); why != "" || err != nil {
			return "", notReady(why, err), err
		}
		if _, problems, err := r.hubKey(ctx, name); problems != "" || err != nil {
			return "", notReady(problems, err), err
		}
	}
	if waits, p := r.checkBroker(ctx, m); waits != "" || p != nil {
		return waits, p, nil
	}
	for _, name := range []string{m.from(), m.to()} {
		if waits, p := r.checkHeartbeat(m, name); waits != "" || p != nil {
			return waits, p, nil
		}
	}
	p, err = r.checkAddress(ctx, m.to()) // last: what waits is repeated, and a dial takes seconds where nothing answers
	return "", p, err
}

// checkNamespace returns a problem if the manager begins no migrations of a namespace. If none is allowed by name, all are.
func checkNamespace(namespace string, allowed []string) *problem {
	if len(allowed) == 0 || slices.Contains(allowed, namespace) {
		return nil
	}
	return &problem{api.ReasonNamespaceNotAllowed.Name, fmt.Sprintf(
		"the manager begins no migrations of namespace %s: create it in one of %s, or add the namespace to --migration-namespaces of the manager (clusterMigration.namespaces of the chart)",
		namespace, strings.Join(allowed, ", "))}
}

// address returns the URL and the CA with which managed clusters reach a hub.
func (r *Reconciler) address(ctx context.Context, name string) (clusterv1.ClientConfig, *problem, error) {
	if r.Direct != nil {
		return r.Direct.Target, nil, nil
	}
	mc := &clusterv1.ManagedCluster{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Name: name}, mc); err != nil {
		return clusterv1.ClientConfig{}, nil, fmt.Errorf("read ManagedCluster %s of the target hub: %w", name, err)
	}
	if configs := mc.Spec.ManagedClusterClientConfigs; len(configs) > 0 && configs[0].URL != "" {
		return configs[0], nil, nil
	}
	return clusterv1.ClientConfig{}, &problem{api.ReasonHubAddressUnknown.Name, fmt.Sprintf(
		"ManagedCluster %s of the target hub has no spec.managedClusterClientConfigs: set it to the URL and the CA of its API server", name)}, nil
}

// checkAddress checks that the CA which clusters get verifies the target hub. Clusters may reach what the manager does not.
func (r *Reconciler) checkAddress(ctx context.Context, name string) (*problem, error) {
	address, p, err := r.address(ctx, name)
	if p != nil || err != nil {
		return nil, err // IssueBootstrap says that there is no address
	}
	untrusted, _ := cluster.CheckAddress(ctx, address)
	switch {
	case untrusted == "":
		return nil, nil
	case r.Direct != nil:
		return &problem{api.ReasonHubAddressUntrusted.Name, DirectAddressUntrusted(name, address.URL, untrusted)}, nil
	}
	return &problem{api.ReasonHubAddressUntrusted.Name, AddressUntrusted(name, address.URL, untrusted)}, nil
}

// DirectAddressUntrusted says that the CA which clusters get of a hub does not verify its API server. The user gives both.
func DirectAddressUntrusted(name, url, why string) string {
	return fmt.Sprintf("the CA that clusters get for hub %s does not verify %s: %s", name, url, why)
}

// AddressUntrusted says that the CA of a hub does not verify its API server.
func AddressUntrusted(name, url, why string) string {
	return fmt.Sprintf("the CA in spec.managedClusterClientConfigs of ManagedCluster %s does not verify %s: %s", name, url, why)
}

func notReady(message string, err error) *problem {
	if err != nil {
		return nil //nolint:nilerr // the caller returns the error: an error is no problem of the migration
	}
	return &problem{api.ReasonHubNotReady.Name, message}
}

// CheckAvailable reads the ManagedCluster of a hub. It returns why the hub is not available, or empty if it is.
func CheckAvailable(ctx context.Context, reader client.Reader, name string) (why string, err error) {
	mc := &clusterv1.ManagedCluster{}
	err = reader.Get(ctx, client.ObjectKey{Name: name}, mc)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("the global hub has no ManagedCluster %s: import the hub, or correct its name", name), nil
	case meta.IsNoMatchError(err):
		return "the global hub serves no ManagedClusters: install Open Cluster Management", nil
	case err != nil:
		return "", fmt.Errorf("read ManagedCluster %s: %w", name, err)
	}
	c := meta.FindStatusCondition(mc.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	switch {
	case c == nil:
		return fmt.Sprintf("hub %s is not available: condition %s is not reported", name, clusterv1.ManagedClusterConditionAvailable), nil
	case c.Status != "True":
		return fmt.Sprintf("hub %s is not available: condition %s is %s: %s", name, c.Type, c.Status, c.Message), nil
	}
	return "", nil
}

// checkBroker creates the topics; this fails if the broker refuses.
func (r *Reconciler) checkBroker(ctx context.Context, m migration) (waits string, p *problem) {
	topics := []string{message.SpecTopic(m.from()), message.StatusTopic(m.from()), message.SpecTopic(m.to()), message.StatusTopic(m.to()), message.MigrationTopic(m.to())}
	err := r.Transport.EnsureTopics(ctx, topics...)
	for _, name := range []string{m.from(), m.to()} {
		if refused := r.receipts.get(name).Refused; err == nil && refused != "" {
			return "", &problem{api.ReasonBrokerRefused.Name, refused}
		}
	}
	var forbidden *kafka.ForbiddenError
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &forbidden), r.Clock.Since(m.state.Since) > maxHeartbeatAge:
		return "", &problem{api.ReasonBrokerRefused.Name, err.Error()}
	}
	return "the broker: " + err.Error(), nil
}

// checkHeartbeat checks the last heartbeat of a hub.
func (r *Reconciler) checkHeartbeat(m migration, name string) (waits string, p *problem) {
	known, now := r.receipts.get(name), r.Clock.Now()
	began := m.state.Since
	if known.CaughtUp.After(began) {
		began = known.CaughtUp
	}
	problem := known.Problem(name, now)
	switch {
	case problem == "":
		return "", nil
	case known.Heartbeat.IsZero() && (known.CaughtUp.IsZero() || now.Sub(began) <= maxHeartbeatAge) && now.Sub(m.state.Since) <= 2*maxHeartbeatAge:
		return fmt.Sprintf("the agent of hub %s has sent no heartbeat yet", name), nil
	}
	return "", notReady(problem, nil)
}
