package klusterlet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
)

// Renders compares what an import controller writes for clusters that have no agents, while their ManagedClusters change as in a migration.
type Renders struct {
	// Hub is the client of the hub, and BootstrapNamespace the namespace of the import controller.
	Hub                client.Client
	BootstrapNamespace string
	// Name is the name of one cluster, and the beginning of the names of the others.
	Name string
	// Pass is a pass of the import controller over a cluster, unless that runs by itself.
	Pass func(ctx context.Context, mc *clusterv1.ManagedCluster) error
	// Settle is how long nothing may change until a state counts as reached. It is for an import controller that runs by itself.
	Settle time.Duration
}

// state is a state of a cluster on a hub.
type state struct {
	name, cluster string
	change        func(ctx context.Context) error
}

// states are what becomes of a cluster at the source of a migration, and then of one at the target.
func (r Renders) states() []state {
	source, target := r.Name, r.Name+"-moved"
	set := func(name, key, value string) func(ctx context.Context) error {
		return func(ctx context.Context) error { return r.annotate(ctx, name, key, value) }
	}
	disable, config := cluster.AnnotationNoAutoImport, cluster.AnnotationKlusterletConfig
	return []state{
		{"imported", source, func(ctx context.Context) error { return r.create(ctx, source, nil) }},
		{"with delete option Orphan on the work of the CRD", source, func(ctx context.Context) error { return r.orphan(ctx, source) }},
		{"with the kubeconfigs of two hubs", source, set(source, config, r.other())},
		{"with automatic import disabled", source, set(source, disable, "true")},
		{"with automatic import disabled, and without the KlusterletConfig", source, set(source, config, "")},
		{"with one kubeconfig again", source, set(source, disable, "")},
		{"created with the kubeconfigs of two hubs, and with automatic import disabled", target, func(ctx context.Context) error {
			return r.create(ctx, target, map[string]string{disable: "true", config: r.other()})
		}},
		{"with automatic import enabled", target, set(target, disable, "")},
		{"with its own kubeconfig", target, set(target, config, "")},
	}
}

// Text brings the clusters from state to state, and describes the works of their klusterlets in each. It waits for what the golden text says of a
// state, or, if that text is empty, until nothing changes. What it returns differs from the golden text if a state is not reached in time.
func (r Renders) Text(ctx context.Context, golden string, perState time.Duration) (string, error) {
	if err := r.prepare(ctx); err != nil {
		return "", err
	}
	var text strings.Builder
	for _, s := range r.states() {
		if err := s.change(ctx); err != nil {
			return "", fmt.Errorf("%s: %w", s.name, err)
		}
		shape, err := r.await(ctx, s, golden, perState)
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.name, err)
		}
		text.WriteString(shape)
	}
	return text.String(), nil
}

// other is the name of the bootstrap secret of the other hub, and of the KlusterletConfig that adds it.
func (r Renders) other() string { return "bootstrap-" + r.Name }

// prepare creates the KlusterletConfig with the kubeconfigs of two hubs.
func (r Renders) prepare(ctx context.Context) error {
	kubeconfig, err := cluster.Kubeconfig("https://other.example.com", nil, "token-of-another-hub")
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.BootstrapNamespace, Name: r.other()}, Data: map[string][]byte{cluster.KubeconfigKey: kubeconfig}}
	if err := r.Hub.Create(ctx, secret); err != nil {
		return err
	}
	spec, err := cluster.TwoHubs{Secret: secret.Name, Reconnect: 3 * time.Minute}.Spec(ctx, r.Hub)
	if err != nil {
		return err
	}
	config := cluster.KlusterletConfig(r.other())
	config.Object["spec"] = spec
	return r.Hub.Create(ctx, config)
}

// create creates a ManagedCluster, and its namespace, unless another controller has done so.
func (r Renders) create(ctx context.Context, name string, annotations map[string]string) error {
	mc := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}
	if err := r.Hub.Create(ctx, mc); err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(r.Hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// Delete deletes the ManagedClusters.
func (r Renders) Delete(ctx context.Context) error {
	var errs []error
	for _, s := range r.states() {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: s.cluster}}
		errs = append(errs, client.IgnoreNotFound(r.Hub.Delete(ctx, mc)))
	}
	return errors.Join(errs...)
}

// annotate sets an annotation of a ManagedCluster, or removes it.
func (r Renders) annotate(ctx context.Context, name, key, value string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		mc := &clusterv1.ManagedCluster{}
		if err := r.Hub.Get(ctx, client.ObjectKey{Name: name}, mc); err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&mc.ObjectMeta, key, value)
		if value == "" {
			delete(mc.Annotations, key)
		}
		return r.Hub.Update(ctx, mc)
	})
}

// orphan sets the delete option of the work of the CRD, as a migration does.
func (r Renders) orphan(ctx context.Context, name string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		work := &workv1.ManifestWork{}
		if err := r.Hub.Get(ctx, client.ObjectKey{Namespace: name, Name: cluster.KlusterletCRDWork(name)}, work); err != nil {
			return err
		}
		work.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
		return r.Hub.Update(ctx, work)
	})
}

// await returns the description of a state when it is reached, and otherwise the last one.
func (r Renders) await(ctx context.Context, s state, golden string, timeout time.Duration) (last string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	since := time.Now()
	for {
		now, err := r.describe(ctx, s)
		if err != nil && ctx.Err() == nil && !IsTransient(err) {
			return "", err
		}
		if err == nil && now != last {
			last, since = now, time.Now()
		}
		if err == nil && strings.Contains(golden, now) && time.Since(since) >= r.Settle {
			return now, nil
		}
		if golden == "" && last != "" && time.Since(since) >= timeout/4 {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, nil
		case <-time.After(defaultTick):
		}
	}
}

func (r Renders) describe(ctx context.Context, s state) (string, error) {
	if r.Pass != nil {
		mc := &clusterv1.ManagedCluster{}
		if err := r.Hub.Get(ctx, client.ObjectKey{Name: s.cluster}, mc); err != nil {
			return "", err
		}
		if err := r.Pass(ctx, mc); err != nil {
			return "", err
		}
	}
	works := &workv1.ManifestWorkList{}
	if err := r.Hub.List(ctx, works, client.InNamespace(s.cluster), client.HasLabels{labelWorks}); err != nil {
		return "", err
	}
	slices.SortFunc(works.Items, func(a, b workv1.ManifestWork) int { return strings.Compare(a.Name, b.Name) })
	var text strings.Builder
	text.WriteString("# " + s.name + "\n")
	for i := range works.Items {
		shape, err := shapeOf(&works.Items[i], s.cluster, r.Name)
		if err != nil {
			return "", err
		}
		text.WriteString(shape)
	}
	return text.String() + "\n", nil
}

// shapeOf describes a work of a klusterlet: its options, the CRD, and the bootstrap kubeconfigs in the order of the Klusterlet.
func shapeOf(w *workv1.ManifestWork, name, prefix string) (string, error) {
	policy := "none"
	if w.Spec.DeleteOption != nil {
		policy = string(w.Spec.DeleteOption.PropagationPolicy)
	}
	var lines []string
	all := true
	for _, m := range w.Spec.Workload.Manifests {
		line, err := shapeOfManifest(m.Raw)
		if err != nil {
			return "", err
		}
		all = all && isReadOnly(w, m)
		if line != "" {
			lines = append(lines, fmt.Sprintf("  %s, read-only %v\n", line, isReadOnly(w, m)))
		}
	}
	slices.Sort(lines)
	text := fmt.Sprintf("ManifestWork %s, delete option %s, read-only as a whole %v\n%s", w.Name, policy, all, strings.Join(lines, ""))
	return strings.ReplaceAll(strings.ReplaceAll(text, name, "CLUSTER"), prefix, "NAME"), nil
}

// isReadOnly reports whether the cluster reads an object of a work and does not change it. An option is of the resource of the object and its name.
func isReadOnly(w *workv1.ManifestWork, m workv1.Manifest) bool {
	wanted := readOnly([]workv1.Manifest{m})[0]
	return slices.ContainsFunc(w.Spec.ManifestConfigs, func(c workv1.ManifestConfigOption) bool {
		return c.ResourceIdentifier == wanted.ResourceIdentifier && c.UpdateStrategy != nil && c.UpdateStrategy.Type == wanted.UpdateStrategy.Type
	})
}

// shapeOfManifest describes an object on which a migration depends; it is empty for others.
func shapeOfManifest(manifest []byte) (string, error) {
	object := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(manifest, &object); err != nil {
		return "", err
	}
	if object.Kind == "CustomResourceDefinition" {
		return "CRD " + object.Name, nil
	}
	klusterlet := &operatorv1.Klusterlet{}
	secret, err := read(manifest, klusterlet)
	switch {
	case err != nil:
		return "", err
	case secret != nil:
		return "Secret " + secret.Namespace + "/" + secret.Name, nil
	case klusterlet.Name == "":
		return "", nil
	}
	names, timeout := bootstrapSecrets(klusterlet)
	line := "Klusterlet " + klusterlet.Name + " with " + strings.Join(names, " ")
	if timeout > 0 {
		line += fmt.Sprintf(", reconnect after %d s", timeout)
	}
	return line, nil
}
