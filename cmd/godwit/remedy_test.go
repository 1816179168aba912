package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/test/kubevirt/cluster"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// spoiled are ways in which a revision of an instance type at v1alpha2 can't be upgraded until
// a user does something.
var spoiled = map[string]func(*appsv1.ControllerRevision){
	"unowned": func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil },
	"foreign": func(r *appsv1.ControllerRevision) {
		r.OwnerReferences[0].APIVersion, r.OwnerReferences[0].Kind = "apps/v1", "StatefulSet"
	},
	"nameless": func(r *appsv1.ControllerRevision) {
		r.Labels = nil
		r.Data.Raw = fmt.Appendf(nil, `{"apiVersion":"","spec":%q}`, base64.StdEncoding.EncodeToString([]byte(`{"cpu":{"guest":1},"memory":{"guest":"4Gi"}}`)))
	},
	"later": func(r *appsv1.ControllerRevision) {
		r.Data.Raw = []byte(strings.Replace(string(r.Data.Raw), "/v1alpha2", "/v2", 1))
	},
	// KubeVirt has upgraded a spec without its object, written the status, and deleted what the spec names.
	"lost": func(r *appsv1.ControllerRevision) {
		r.Name = lostReplacement(r.OwnerReferences[0].Name)
		r.Data.Raw = []byte(`{"apiVersion":"instancetype.kubevirt.io/v1beta1","kind":"VirtualMachineInstancetype","metadata":{"name":"old-version-of-instancetype-object","creationTimestamp":null},"spec":{"cpu":{"guest":1},"memory":{"guest":"4Gi"}}}`)
		r.Labels = map[string]string{"instancetype.kubevirt.io/object-name": "old-version-of-instancetype-object", "instancetype.kubevirt.io/object-version": "v1beta1"}
	},
}

func lostReplacement(vm string) string { return vm + "-old-version-of-instancetype-object-v1beta1--0" }

// spoil MACHINE HOW [spaced]: a VirtualMachine with a revision that is called MACHINE-HOW-copy,
// or HOW-copy if its name must not tell whose it is. The data of a spaced revision has bytes
// that scripts and backups write and that no API server would write.
func spoil(ts *testscript.TestScript, args []string) error {
	s, err := shopOf(ts)
	if err != nil {
		return err
	}
	f := fixture.Find("F2/VirtualMachineClusterInstancetype/labelled")
	vm := fixture.VirtualMachine(s.Name, args[0], fixture.InSpec, f)
	r := f.Revision(vm)
	r.Name = args[0] + "-" + args[1] + "-copy"
	if args[1] == "unowned" {
		r.Name = args[1] + "-copy"
	}
	instancetype := vm.Object["spec"].(map[string]any)["instancetype"].(map[string]any)
	instancetype["revisionName"] = r.Name
	if args[1] == "lost" {
		ref := map[string]any{"name": f.Object, "kind": f.Kind, "controllerRevisionRef": map[string]any{"name": lostReplacement(args[0])}}
		vm.Object["status"] = map[string]any{"instancetypeRef": ref}
	}
	there, err := cluster.Create(context.Background(), s.Objects, vm)
	if err != nil {
		return err
	}
	r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(there, there.GroupVersionKind())}
	spoiled[args[1]](r)
	if len(args) < 3 {
		return s.CreateRevision(context.Background(), r)
	}
	var text bytes.Buffer
	if err := json.Indent(&text, r.Data.Raw, "", "  "); err != nil {
		return err
	}
	r.Namespace, r.Data.Raw = s.Name, text.Bytes()
	_, err = cluster.CreateRevision(context.Background(), s.Core, r)
	return err
}

// paste REGEXP [OLD=NEW...]: runs the command that was printed last and that matches, with
// placeholders replaced, in a shell that has godwit and kubectl.
func paste(ts *testscript.TestScript, args []string) error {
	printed := ts.ReadFile("stdout") + ts.ReadFile("stderr")
	command := regexp.MustCompile(args[0]).FindString(printed)
	if command == "" {
		return fmt.Errorf("no command matches %s in:\n%s", args[0], printed)
	}
	for _, pair := range args[1:] {
		from, to, _ := strings.Cut(pair, "=")
		command = strings.ReplaceAll(command, from, to)
	}
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join("..", "..", "bin", "controlplane")
	}
	tools, err := filepath.Abs(assets)
	if err != nil {
		return err
	}
	ts.Setenv("PATH", ts.Getenv("PATH")+string(os.PathListSeparator)+tools)
	return ts.Exec("sh", "-ec", command)
}

// stores VERSION: KubeVirt's CRDs serve and store another version, as one that is
// newer than this release does. The versions that they had are still served.
func storeAt(ts *testscript.TestScript, args []string) error {
	client, err := apiextensions.NewForConfig(clusterOf(ts).Config())
	if err != nil {
		return err
	}
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	for _, resource := range (kubevirt.Family{}).Describe().Resources {
		crd, err := crds.Get(context.Background(), resource.String(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		var stored apiextensionsv1.CustomResourceDefinitionVersion
		for i, v := range crd.Spec.Versions {
			if v.Storage {
				stored = v
			}
			crd.Spec.Versions[i].Storage = false
		}
		stored.Name = args[0]
		crd.Spec.Versions = append(crd.Spec.Versions, stored)
		if _, err := crds.Update(context.Background(), crd, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
