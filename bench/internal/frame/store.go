package frame

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// putsPerWrite stays below etcd's limit of 128 operations in a transaction (--max-txn-ops).
	putsPerWrite = 100
	// writers write to etcd in parallel.
	writers = 8
)

// Store writes n objects to etcd without the API server, which would take a quarter of an hour for a million. It calls object
// with the numbers from 0 to n-1, from several goroutines.
func (c *Cluster) Store(ctx context.Context, n int, object func(i int) (key, value string)) error {
	batches := (n + putsPerWrite - 1) / putsPerWrite
	return Times(batches, writers, func(batch int) error {
		var puts []clientv3.Op
		for i := batch * putsPerWrite; i < min((batch+1)*putsPerWrite, n); i++ {
			key, value := object(i)
			puts = append(puts, clientv3.OpPut(key, value))
		}
		_, err := c.Etcd().Txn(ctx).Then(puts...).Commit()
		return err
	})
}
