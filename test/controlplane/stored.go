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
	// pageKeys bounds memory per read; 500 is kubectl's --chunk-size default.
	pageKeys = 500
)

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
			var stored struct {
				APIVersion string `json:"apiVersion"`
			}
			if err := json.Unmarshal(object.Value, &stored); err != nil {
				return nil, fmt.Errorf("decode %s, which a custom resource stores as plain JSON: %w", object.Key, err)
			}
			counts[stored.APIVersion]++
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
