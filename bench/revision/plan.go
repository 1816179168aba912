package main

import (
	"bytes"
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/bench/internal/frame"
)

// plan is the result of `godwit revision plan` of a large cluster.
type plan struct {
	VMs        int `json:"vms"`
	Namespaces int `json:"namespaces"`
	pass
}

// perNamespace is the number of VirtualMachines in a namespace of a large cluster.
const perNamespace = 1000

func measurePlan(ctx context.Context, b *frame.Bench, vms int) (*plan, error) {
	p := &plan{Namespaces: max(1, vms/perNamespace)}
	p.VMs = p.Namespaces * perNamespace
	f, err := startFleet(ctx, b, p.Namespaces)
	if err != nil {
		return nil, err
	}
	others := f.namespaces[1:]
	f.namespaces = f.namespaces[:1]
	if err := f.grow(ctx, perNamespace); err != nil {
		return nil, err
	}
	frame.Logf("copying them to %d more namespaces, in etcd", len(others))
	for i, to := range others {
		if err := f.copy(ctx, to, i); err != nil {
			return nil, err
		}
	}
	if p.pass, err = f.runPlan(ctx, p.VMs); err != nil {
		return nil, err
	}
	frame.Logf("plan of %d: %.2f s, %.1f MiB", p.VMs, p.Seconds, p.PeakRSSMiB())
	return p, nil
}

// copy stores all objects of the first namespace in another namespace, too. A copy has another namespace and other last digits in
// its UIDs. The new texts have the same length as before, so that lengths in the encoding stay right.
func (f *fleet) copy(ctx context.Context, to string, number int) error {
	from := f.namespaces[0]
	if len(to) != len(from) {
		return fmt.Errorf("namespace %s is not as long as %s", to, from)
	}
	replace, err := f.uids(ctx, fmt.Sprintf("%03d", number))
	if err != nil {
		return err
	}
	for _, resource := range []string{"kubevirt.io/virtualmachines", "controllerrevisions"} {
		prefix := "/registry/" + resource + "/"
		stored, err := f.Etcd().Get(ctx, prefix+from+"/", clientv3.WithPrefix())
		if err != nil {
			return err
		}
		if err := f.Store(ctx, len(stored.Kvs), func(i int) (key, value string) {
			name, object := lastOf(stored.Kvs[i].Key), bytes.ReplaceAll(stored.Kvs[i].Value, []byte(from), []byte(to))
			for _, uid := range replace[name] {
				object = bytes.ReplaceAll(object, uid.before, uid.after)
			}
			return prefix + to + "/" + name, string(object)
		}); err != nil {
			return err
		}
	}
	return nil
}

func lastOf(key []byte) string { return string(key[bytes.LastIndexByte(key, '/')+1:]) }

type replacement struct{ before, after []byte }

// uids returns the replacements for the UIDs in each object of the first namespace, by the name of the object: for its own UID,
// and for the UIDs of its owners.
func (f *fleet) uids(ctx context.Context, digits string) (map[string][]replacement, error) {
	vms, err := f.dynamic.Resource(virtualMachines).Namespace(f.namespaces[0]).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	revisions, err := f.revisions(ctx, f.namespaces[0])
	if err != nil {
		return nil, err
	}
	all := map[string][]replacement{}
	add := func(o metav1.Object) {
		for _, uid := range append(ownersOf(o), string(o.GetUID())) {
			all[o.GetName()] = append(all[o.GetName()], replacement{[]byte(uid), []byte(uid[:len(uid)-len(digits)] + digits)})
		}
	}
	for i := range vms.Items {
		add(&vms.Items[i])
	}
	for _, r := range revisions {
		add(r)
	}
	return all, nil
}

func ownersOf(o metav1.Object) []string {
	var all []string
	for _, owner := range o.GetOwnerReferences() {
		all = append(all, string(owner.UID))
	}
	return all
}
