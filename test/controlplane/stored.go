package controlplane

import (
	"context"
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// registry is kube-apiserver's default --etcd-prefix.
	registry = "/registry/"
	// pageKeys bounds memory per read. With each page etcd counts all keys that follow, which takes minutes over a million
	// objects in pages of 500.
	pageKeys = 1000
)

// stored is the part of a custom resource in etcd that says at which version it is: it is plain JSON there.
type stored struct {
	APIVersion string `json:"apiVersion"`
}

// StoredAt is the apiVersion at which etcd has one custom resource, such as "example.com/v1".
func (cp *ControlPlane) StoredAt(ctx context.Context, group, plural, namespace, name string) (string, error) {
	key := registry + group + "/" + plural + "/" + namespace + "/" + name
	found, err := cp.client.Get(ctx, key)
	if err != nil {
		return "", fmt.Errorf("read %s from etcd: %w", key, err)
	}
	if len(found.Kvs) == 0 {
		return "", fmt.Errorf("read %s from etcd: no such key", key)
	}
	var object stored
	if err := json.Unmarshal(found.Kvs[0].Value, &object); err != nil {
		return "", fmt.Errorf("decode %s: %w", key, err)
	}
	return object.APIVersion, nil
}

// CountStored counts a custom resource's objects in etcd by the apiVersion at which they are stored, such as
// "example.com/v1", all at one revision. It uses no API server, and shares no code with the migrator that it checks.
func (cp *ControlPlane) CountStored(ctx context.Context, group, plural string) (map[string]int, error) {
	prefix := registry + group + "/" + plural + "/"
	end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix))
	counts := map[string]int{}
	from, revision := prefix, int64(0) // revision 0 is the newest; the first page has its number
	for {
		page, err := cp.client.Get(ctx, from, end, clientv3.WithLimit(pageKeys), clientv3.WithRev(revision))
		if err != nil {
			return nil, fmt.Errorf("read %s from etcd: %w", prefix, err)
		}
		for _, object := range page.Kvs {
			var one stored
			if err := json.Unmarshal(object.Value, &one); err != nil {
				return nil, fmt.Errorf("decode %s: %w", object.Key, err)
			}
			counts[one.APIVersion]++
			from = string(object.Key) + "\x00" // the smallest key after this one
		}
		if !page.More {
			return counts, nil
		}
		if revision == 0 {
			revision = page.Header.Revision
		}
	}
}
