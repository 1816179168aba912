package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/policy"
)

// within bounds what a script command waits for on the control plane.
const within = 3 * time.Minute

// crd PLURAL VERSION...: creates PLURAL.$GROUP, or changes its versions. A
// version followed by * is the storage version, by - is not served, by + has a
// status, by ! is deprecated, which does not say in favour of what.
func installCRD(ts *testscript.TestScript, args []string) error {
	crd := newCRD(ts, args[0], args[1:])
	err := controlplane.InstallCRDs(context.Background(), clusterOf(ts).Config(), crd)
	if apierrors.IsAlreadyExists(err) {
		_, err = controlplane.UpdateCRD(context.Background(), clusterOf(ts).Config(), crd.Name,
			func(there *apiextensionsv1.CustomResourceDefinition) { there.Spec.Versions = crd.Spec.Versions })
	}
	return err
}

// deleteCRD has a CRD be deleted until the end of the test, which lets go of it.
func deleteCRD(ts *testscript.TestScript, args []string) error {
	ctx, config, name := context.Background(), clusterOf(ts).Config(), args[0]+"."+ts.Getenv("GROUP")
	_, err := controlplane.UpdateCRD(ctx, config, name, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Finalizers = append(crd.Finalizers, "test.godwit.dev/hold")
	})
	if err != nil {
		return err
	}
	clients, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	crds := clients.ApiextensionsV1().CustomResourceDefinitions()
	ts.Defer(func() {
		_, err := crds.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) { // the script may have let go of it
			ts.Check(err)
		}
	})
	return crds.Delete(ctx, name, metav1.DeleteOptions{})
}

// crds N VERSION...: creates N of them, many00.$GROUP and so on.
func installCRDs(ts *testscript.TestScript, args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, n)
	for i := range crds {
		crds[i] = newCRD(ts, fmt.Sprintf("many%02d", i), args[1:])
	}
	return controlplane.InstallCRDs(context.Background(), clusterOf(ts).Config(), crds...)
}

func newCRD(ts *testscript.TestScript, plural string, versions []string) *apiextensionsv1.CustomResourceDefinition {
	group := ts.Getenv("GROUP")
	kind := strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group, Labels: map[string]string{"script": group}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group:    group,
			Scope:    apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: versionsOf(versions),
		},
	}
}

func versionsOf(args []string) []apiextensionsv1.CustomResourceDefinitionVersion {
	open := true
	versions := make([]apiextensionsv1.CustomResourceDefinitionVersion, len(args))
	for i, arg := range args {
		versions[i] = apiextensionsv1.CustomResourceDefinitionVersion{
			Name:    strings.TrimRight(arg, "*-+!"),
			Served:  !strings.Contains(arg, "-"),
			Storage: strings.Contains(arg, "*"),
			Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open},
			},
		}
		if strings.Contains(arg, "!") {
			versions[i].Deprecated, versions[i].DeprecationWarning = true, new("use another version")
		}
		if strings.Contains(arg, "+") {
			versions[i].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
		}
	}
	return versions
}

// objects PLURAL VERSION N [PREFIX]: creates w-000 and so on.
func createObjects(ts *testscript.TestScript, args []string) error {
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(clusterOf(ts).Config())
	if err != nil {
		return err
	}
	group, plural, version, prefix := ts.Getenv("GROUP"), args[0], args[1], "w"
	if len(args) > 3 {
		prefix = args[3]
	}
	objects := client.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural}).Namespace("default")
	failures := make([]error, 8)
	var creators sync.WaitGroup
	for c := range failures {
		creators.Go(func() {
			for i := c; i < n && failures[c] == nil; i += len(failures) {
				o := &unstructured.Unstructured{}
				o.SetAPIVersion(group + "/" + version)
				o.SetKind(strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s"))
				o.SetName(fmt.Sprintf("%s-%03d", prefix, i))
				_, failures[c] = objects.Create(context.Background(), o, metav1.CreateOptions{})
			}
		})
	}
	creators.Wait()
	return errors.Join(failures...)
}

// apply PLURAL VERSION NAME: a server-side apply, which managedFields remember.
func applyObject(ts *testscript.TestScript, args []string) error {
	client, err := dynamic.NewForConfig(clusterOf(ts).Config())
	if err != nil {
		return err
	}
	group, plural, version, name := ts.Getenv("GROUP"), args[0], args[1], args[2]
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"of": name}}}
	o.SetAPIVersion(group + "/" + version)
	o.SetKind(strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s"))
	_, err = client.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural}).Namespace("default").
		Apply(context.Background(), name, o, metav1.ApplyOptions{FieldManager: "painter"})
	return err
}

// adopted: returns when every API server has renewed its lease two seconds after
// now, and thus after every change that came before.
func awaitAdopted(ts *testscript.TestScript, _ []string) error {
	clients, err := kubernetes.NewForConfig(clusterOf(ts).Config())
	if err != nil {
		return err
	}
	since := time.Now().Add(2 * time.Second)
	return eventually(func() error {
		leases, err := clients.CoordinationV1().Leases("kube-system").List(context.Background(),
			metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver"})
		if err != nil {
			return err
		}
		for _, l := range leases.Items {
			if l.Spec.RenewTime.Time.Before(since) {
				return fmt.Errorf("lease %s was renewed at %v", l.Name, l.Spec.RenewTime)
			}
		}
		return nil
	})
}

// aged PLURAL: makes a CRD look as if its spec was last changed two hours ago.
func ageCRD(ts *testscript.TestScript, args []string) error {
	before := metav1.NewTime(time.Now().Add(-2 * time.Hour))
	_, err := controlplane.UpdateCRD(context.Background(), clusterOf(ts).Config(), args[0]+"."+ts.Getenv("GROUP"),
		func(crd *apiextensionsv1.CustomResourceDefinition) {
			for i := range crd.ManagedFields {
				crd.ManagedFields[i].Time = &before
			}
		})
	return err
}

// frozen are the objects whose updates a script has admission deny.
type frozen struct {
	resource        schema.GroupVersionResource
	namespace, name string // of one of them
	match           string // an expression of name
	policy          string
}

// frozenOf reads PLURAL NAME, which is an object of the script's group in the namespace default,
// or PLURAL.VERSION.GROUP NAME, which is one in $NS. NAME may be a PREFIX with a star, for all
// objects whose name begins with PREFIX, one of which is PREFIX with 00.
func frozenOf(ts *testscript.TestScript, args []string) frozen {
	f := frozen{
		resource:  schema.GroupVersionResource{Group: ts.Getenv("GROUP"), Version: "v2", Resource: args[0]},
		namespace: metav1.NamespaceDefault, name: args[1], match: fmt.Sprintf("object.metadata.name == %q", args[1]), policy: "freeze." + ts.Getenv("GROUP"),
	}
	if prefix, many := strings.CutSuffix(args[1], "*"); many {
		f.name, f.match = prefix+"00", fmt.Sprintf("object.metadata.name.startsWith(%q)", prefix)
	}
	if full, _ := schema.ParseResourceArg(args[0]); full != nil {
		f.resource, f.namespace = *full, ts.Getenv("NS")
	}
	return f
}

// deny PLURAL[.VERSION.GROUP] NAME|PREFIX*: has a policy refuse every update of one object, or of several.
func deny(ts *testscript.TestScript, args []string) error {
	clients, err := kubernetes.NewForConfig(clusterOf(ts).Config())
	if err != nil {
		return err
	}
	f := frozenOf(ts, args)
	if err := f.denial().Create(context.Background(), clients); err != nil {
		return err
	}
	return f.await(ts, true)
}

// denial is the policy.
func (f frozen) denial() policy.Policy {
	return policy.Policy{
		Name: f.policy, Group: f.resource.Group, Resource: f.resource.Resource,
		Validations: []admissionv1.Validation{{
			Expression: fmt.Sprintf("object.metadata.namespace != %q || !(%s)", f.namespace, f.match),
			Message:    "frozen by the auditors",
		}},
	}
}

// allow PLURAL[.VERSION.GROUP] NAME: deletes the policy that deny made.
func allow(ts *testscript.TestScript, args []string) error {
	clients, err := kubernetes.NewForConfig(clusterOf(ts).Config())
	if err != nil {
		return err
	}
	f := frozenOf(ts, args)
	if err := f.denial().Delete(context.Background(), clients); err != nil {
		return err
	}
	return f.await(ts, false)
}

// await returns when admission has adopted a policy, or its end.
func (f frozen) await(ts *testscript.TestScript, denied bool) error {
	client, err := dynamic.NewForConfig(clusterOf(ts).Config())
	if err != nil {
		return err
	}
	return policy.Await(context.Background(), denied, func(ctx context.Context) error {
		_, err := client.Resource(f.resource).Namespace(f.namespace).Patch(ctx, f.name, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
}

// user NAME: adds NAME.kubeconfig of a user without rights.
func addUser(ts *testscript.TestScript, args []string) error {
	config, err := clusterOf(ts).AddUser(args[0])
	if err != nil {
		return err
	}
	return controlplane.WriteKubeconfig(ts.MkAbs(args[0]+".kubeconfig"), config)
}

// grant USER VERBS GROUP RESOURCES: by a cluster role.
func grantRight(ts *testscript.TestScript, args []string) error {
	clients, err := kubernetes.NewForConfig(clusterOf(ts).Config())
	if err != nil {
		return err
	}
	name := strings.Join([]string{args[0], strings.ReplaceAll(args[1], ",", "-"), args[2]}, ".")
	rbac := clients.RbacV1()
	_, err = rbac.ClusterRoles().Create(context.Background(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{
			Verbs: strings.Split(args[1], ","), APIGroups: []string{args[2]}, Resources: strings.Split(args[3], ","),
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = rbac.ClusterRoleBindings().Create(context.Background(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: args[0]}},
	}, metav1.CreateOptions{})
	// The authorizer follows by a watch.
	time.Sleep(500 * time.Millisecond)
	return err
}

// etcdput KEY BASE64: what no API server would write.
func putIntoEtcd(ts *testscript.TestScript, args []string) error {
	value, err := base64.StdEncoding.DecodeString(args[1])
	if err != nil {
		return err
	}
	_, err = clusterOf(ts).Etcd().Put(context.Background(), args[0], string(value))
	return err
}

// migrating PLURAL VERSION: waits until the first object is stored at that version.
func awaitFirstAt(ts *testscript.TestScript, args []string) error {
	return eventually(func() error {
		stored, err := clusterOf(ts).CountStored(context.Background(), ts.Getenv("GROUP"), args[0])
		if err == nil && stored[ts.Getenv("GROUP")+"/"+args[1]] == 0 {
			err = fmt.Errorf("%s are stored at %v", args[0], stored)
		}
		return err
	})
}

// lease NAME [AGE]: an API server that exists as far as its identity lease shows,
// which it last renewed that long ago. Without AGE, the lease is removed.
func setLease(ts *testscript.TestScript, args []string) error {
	clients, err := kubernetes.NewForConfig(clusterOf(ts).Config())
	if err != nil {
		return err
	}
	leases := clients.CoordinationV1().Leases("kube-system")
	if len(args) == 1 {
		return leases.Delete(context.Background(), args[0], metav1.DeleteOptions{})
	}
	age, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	hour, renewed := int32(3600), metav1.NewMicroTime(time.Now().Add(-age))
	_, err = leases.Create(context.Background(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: args[0], Labels: map[string]string{
			"apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": args[0],
		}},
		Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &hour, RenewTime: &renewed},
	}, metav1.CreateOptions{})
	return err
}

func eventually(check func() error) error {
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}
