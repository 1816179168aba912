package main

import (
	"bytes"
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/bench/internal/measure"
)

// plan is `godwit revision plan` of a whole cluster.
type plan struct {
	VMs        int `json:"vms"`
	Namespaces int `json:"namespaces"`
	pass
}

// perNamespace is how many VirtualMachines a namespace of a large cluster has.
const perNamespace = 1000

func measurePlan(ctx context.Context, s settings) (*plan, error) {
	p := &plan{Namespaces: max(1, s.plan/perNamespace)}
	p.VMs = p.Namespaces * perNamespace
	err := onControlPlane(ctx, s.binary, p.Namespaces, func(f *fleet, c *command) error {
		others := f.namespaces[1:]
		f.namespaces = f.namespaces[:1]
		if err := f.grow(ctx, perNamespace); err != nil {
			return err
		}
		measure.Say("copying them to %d more namespaces, in etcd", len(others))
		for i, to := range others {
			if err := f.copy(ctx, to, i); err != nil {
				return err
			}
		}
		var err error
		if p.pass, err = c.plan(ctx, p.VMs); err != nil {
			return err
		}
		measure.Say("plan of %d: %.2f s, %.1f MiB", p.VMs, p.Seconds, p.PeakRSSMiB())
		return nil
	})
	return p, err
}

// copy writes all objects of the first namespace to etcd again, in another namespace. It would
// take an hour to create as many through the API server. A copy differs in its namespace and in
// the last digits of its UIDs. Both have the same length as before, so that lengths in the
// encoding stay right.
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
		stored, err := f.plane.Etcd().Get(ctx, prefix+from+"/", clientv3.WithPrefix())
		if err != nil {
			return err
		}
		var puts []clientv3.Op
		for i, object := range stored.Kvs {
			value := bytes.ReplaceAll(object.Value, []byte(from), []byte(to))
			for _, uid := range replace[lastOf(object.Key)] {
				value = bytes.ReplaceAll(value, uid.before, uid.after)
			}
			puts = append(puts, clientv3.OpPut(prefix+to+"/"+lastOf(object.Key), string(value)))
			if len(puts) == maxOperations || i == len(stored.Kvs)-1 {
				if _, err := f.plane.Etcd().Txn(ctx).Then(puts...).Commit(); err != nil {
					return err
				}
				puts = nil
			}
		}
	}
	return nil
}

// maxOperations of one transaction: etcd's --max-txn-ops is 128 by default.
const maxOperations = 100

func lastOf(key []byte) string { return string(key[bytes.LastIndexByte(key, '/')+1:]) }

type replacement struct{ before, after []byte }

// uids are what to replace in each object of the first namespace, by its name: its own UID, and
// those of its owners.
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
