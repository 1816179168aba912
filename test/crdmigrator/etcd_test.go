package crdmigrator_test

import (
	"context"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/crdmigrator/etcdverify"
	"github.com/godwit-dev/godwit/internal/storageversion"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// etcdKV reads etcd for etcdverify.
type etcdKV struct{ client *clientv3.Client }

func (kv etcdKV) Range(ctx context.Context, from, to string, limit, revision int64) ([]etcdverify.Pair, int64, error) {
	resp, err := kv.client.Get(ctx, from, clientv3.WithRange(to), clientv3.WithLimit(limit), clientv3.WithRev(revision))
	if err != nil {
		return nil, 0, err
	}
	pairs := make([]etcdverify.Pair, len(resp.Kvs))
	for i, pair := range resp.Kvs {
		pairs[i] = etcdverify.Pair{Key: string(pair.Key), Value: pair.Value}
	}
	if revision == 0 {
		revision = resp.Header.Revision
	}
	return pairs, revision, nil
}

// writes returns how often each object was written to etcd, including its creation.
func (w *widgets) writes() map[string]int64 {
	w.t.Helper()
	resp, err := w.plane.Etcd().Get(w.t.Context(), w.keys(), clientv3.WithPrefix())
	if err != nil {
		w.t.Fatal(err)
	}
	writes := map[string]int64{}
	for _, pair := range resp.Kvs {
		writes[string(pair.Key)] = pair.Version
	}
	return writes
}

// mustHaveBeenWritten checks how often each of n objects was written.
func (w *widgets) mustHaveBeenWritten(reason string, n int, times int64) {
	w.t.Helper()
	writes := w.writes()
	if len(writes) != n {
		w.t.Errorf("%s: %d objects, want %d", reason, len(writes), n)
	}
	for key, got := range writes {
		if got != times {
			w.t.Errorf("%s: %s was written %d times, want %d", reason, key, got, times)
		}
	}
}

// TestEtcdVerifyAgreesWithEtcd: before, during and after a migration, with more
// objects than one read of etcd returns.
func TestEtcdVerifyAgreesWithEtcd(t *testing.T) {
	t.Parallel()
	w := newWidgets(t, shared)
	m := w.quickMigrator(storageversion.Options{PageObjects: 50})
	w.fill("v1", 210)
	w.flip()

	w.mustVerify("before", false)
	run := w.pauseAfter(t.Context(), m, 100)
	halfway := w.mustVerify("in the middle", false)
	if halfway.ByVersion["v1"] == 0 || halfway.ByVersion["v2"] < 100 {
		t.Errorf("in the middle etcdverify counts %v, want some of v1 and at least 100 of v2", halfway.ByVersion)
	}
	if _, err := run.resume(); err != nil {
		t.Fatal(err)
	}
	w.mustVerify("after", true)
}

// mustVerify compares etcdverify with the control plane's own count. No client may
// write between the two.
func (w *widgets) mustVerify(when string, proven bool) etcdverify.Count {
	w.t.Helper()
	var count etcdverify.Count
	var diff string
	await(w.t, "writes under way to end", func() bool {
		before := w.stored()
		var err error
		count, err = etcdverify.Scan(w.t.Context(), etcdKV{w.plane.Etcd()}, etcdverify.DefaultPrefix, schema.GroupResource{Group: w.group, Resource: w.plural})
		if err != nil {
			w.t.Fatal(err)
		}
		after := map[string]int64{}
		for version, n := range w.stored() {
			after[version] = int64(n)
		}
		diff = cmp.Diff(etcdverify.Count{Objects: 210, ByVersion: after, Namespaced: 210}, count)
		return maps.Equal(before, w.stored())
	})
	if diff != "" {
		w.t.Errorf("%s (-etcd +etcdverify):\n%s", when, diff)
	}
	if count.Proven("v2") != proven {
		w.t.Errorf("%s: Proven = %v for %+v, want %v", when, !proven, count, proven)
	}
	return count
}

var _ etcdverify.KV = etcdKV{}

// ownPlane starts a control plane for a test that disturbs it.
func ownPlane(t *testing.T, apiServerArgs ...string) *controlplane.ControlPlane {
	t.Helper()
	plane := controlplane.Options{APIServerArgs: apiServerArgs}.StartFor(t)
	return plane
}
