package ocm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/process"
)

// StartHub starts a hub and returns when it registers clusters, after about 10 s.
func StartHub(ctx context.Context, name string, o HubOptions) (*Hub, error) {
	program, err := registration()
	if err != nil {
		return nil, err
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return nil, fmt.Errorf("start hub %s: %w", name, err)
	}
	h := &Hub{ControlPlane: cp, Name: name, program: program, bootstrapNamespace: o.BootstrapNamespace, original: o.Original}
	if h.bootstrapNamespace == "" {
		h.bootstrapNamespace = "multicluster-engine"
	}
	if err := h.start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("start hub %s: %w", name, err), h.Stop())
	}
	return h, nil
}

// Stop ends the hub. Stop the clusters first: their agents would look for another hub.
func (h *Hub) Stop() error {
	h.operator.stop()
	h.importer.stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	if h.importController != nil {
		if err := h.importController.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("%w%s", err, process.Tail(h.ImportLog())))
		}
	}
	if h.controller != nil {
		errs = append(errs, h.controller.Stop())
	}
	errs = append(errs, h.ControlPlane.Stop())
	if h.log != nil {
		errs = append(errs, h.log.Close())
	}
	return errors.Join(errs...)
}

func (h *Hub) start(ctx context.Context, o HubOptions) error {
	var err error
	if h.log, err = openLog(filepath.Join(h.Dir(), "played.log")); err != nil {
		return err
	}
	if h.Client, err = client.New(unlimited(h.Config()), client.Options{Scheme: Scheme()}); err != nil {
		return fmt.Errorf("connect to it: %w", err)
	}
	if _, err := h.StartControllerManager(ctx, "--controllers=certificatesigningrequest-signing-controller,namespace-controller,"+
		"garbage-collector-controller,root-ca-certificate-publisher-controller,serviceaccount-controller,serviceaccount-token-controller"); err != nil {
		return err
	}
	crds, err := CRDs(ctx, "cluster/v1/*.crd.yaml", "cluster/v1beta1/*.crd.yaml", "cluster/v1beta2/*.crd.yaml", "work/v1/*_manifestworks.crd.yaml",
		"addon/v1alpha1/*.crd.yaml", "operator/v1/*_clustermanagers.crd.yaml")
	if err != nil {
		return err
	}
	if crds, err = o.Original.crds(append(crds, o.CRDs...)); err != nil {
		return err
	}
	if err := controlplane.InstallCRDs(ctx, h.Config(), crds...); err != nil {
		return err
	}
	if err := o.Original.prepare(ctx, h); err != nil {
		return err
	}
	if err := h.createBootstrapAccount(ctx); err != nil {
		return err
	}
	if h.kubeconfig, err = h.IssueKubeconfig(ctx, hubNamespace, bootstrapAccount, tokenLifetime); err != nil {
		return err
	}
	if err := h.restartController(nil); err != nil {
		return err
	}
	h.operator = startLoop(h.Name+": operator", h.log, h.operate)
	if o.Original.Source != "" {
		h.importController, err = o.Original.run(h)
		return err
	}
	if !o.Plain {
		h.StartImports()
	}
	return nil
}

// createBootstrapAccount creates the objects that the chart of Open Cluster Management creates for registration.
func (h *Hub) createBootstrapAccount(ctx context.Context) error {
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubNamespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controllerNamespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.bootstrapNamespace}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubNamespace, Name: bootstrapAccount}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: bootstrapRole}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
			{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get", "list", "watch"}},
			{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"}, Verbs: []string{"get", "create", "list", "watch"}},
			{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclustersets/join"}, Verbs: []string{"create"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: bootstrapRole},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: bootstrapRole},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hubNamespace, Name: bootstrapAccount}},
		},
	} {
		if err := h.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}
