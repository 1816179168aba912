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
	// pageKeys bounds memory per read. For each page, etcd counts all keys that follow. With pages of 500, this takes minutes
	// for a million objects.
	pageKeys = 1000
)

// versionOf reads the apiVersion of a custom resource, which etcd has as plain JSON.
func versionOf(key, value []byte) (string, error) {
	var stored struct {
		APIVersion string `json:"apiVersion"`
	}
	if err := json.Unmarshal(value, &stored); err != nil {
		return "", fmt.Errorf("decode %s: %w", key, err)
	}
	return stored.APIVersion, nil
}

// StoredAt returns the apiVersion at which etcd has one custom resource, such as "example.com/v1".
func (cp *ControlPlane) StoredAt(ctx context.Context, group, plural, namespace, name string) (string, error) {
	key := registry + group + "/" + plural + "/" + namespace + "/" + name
	found, err := cp.client.Get(ctx, key)
	if err != nil {
		return "", fmt.Errorf("read %s from etcd: %w", key, err)
	}
	if len(found.Kvs) == 0 {
		return "", fmt.Errorf("read %s from etcd: no such key", key)
	}
	return versionOf(found.Kvs[0].Key, found.Kvs[0].Value)
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
			version, err := versionOf(object.Key, object.Value)
			if err != nil {
				return nil, err
			}
			counts[version]++
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
