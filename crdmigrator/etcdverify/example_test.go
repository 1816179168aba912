package etcdverify_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/crdmigrator/etcdverify"
)

// snapshot stands for an etcd client: with go.etcd.io/etcd/client/v3, Range is
// a Get with WithRange, WithLimit and WithRev.
type snapshot []etcdverify.Pair

func (s snapshot) Range(_ context.Context, from, to string, limit, _ int64) (pairs []etcdverify.Pair, atRevision int64, err error) {
	for _, p := range s {
		if from <= p.Key && p.Key < to && int64(len(pairs)) < limit {
			pairs = append(pairs, p)
		}
	}
	return pairs, 1, nil
}

// One of three objects was left behind at v1.
func ExampleScan() {
	etcd := snapshot{
		{Key: "/registry/example.com/widgets/default/a", Value: []byte(`{"apiVersion":"example.com/v2","kind":"Widget"}`)},
		{Key: "/registry/example.com/widgets/default/b", Value: []byte(`{"apiVersion":"example.com/v1","kind":"Widget"}`)},
		{Key: "/registry/example.com/widgets/default/c", Value: []byte(`{"apiVersion":"example.com/v2","kind":"Widget"}`)},
	}
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	count, err := etcdverify.Scan(context.Background(), etcd, etcdverify.DefaultPrefix, widgets)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(count.Objects, "objects:", count.ByVersion)
	fmt.Println("v1 may be dropped:", count.Proven("v2"))
	// Output:
	// 3 objects: map[v1:1 v2:2]
	// v1 may be dropped: false
}
