package widget

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/godwit-dev/godwit/bench/internal/measure"
)

const (
	// copiesPerWrite stays below etcd's limit of 128 operations in a transaction.
	copiesPerWrite = 100

	// copiers write to etcd in parallel.
	copiers = 8
)

// Copy makes n objects without the API server, which would take a quarter of an hour for a million: it creates one, and
// copies what etcd then holds, each with a name and a UID of its own.
func (r *Resource) Copy(ctx context.Context, n int) error {
	const first = "w-first"
	if err := r.create(ctx)(first); err != nil {
		return err
	}
	key := r.Prefix() + Namespace + "/" + first
	stored, err := r.plane.Etcd().Get(ctx, key)
	if err != nil {
		return err
	}
	if len(stored.Kvs) != 1 {
		return fmt.Errorf("etcd holds %d objects at %s, want 1", len(stored.Kvs), key)
	}
	object, err := newTemplate(stored.Kvs[0].Value, first)
	if err != nil {
		return fmt.Errorf("copy %s: %w", key, err)
	}
	var batches []int
	for from := 0; from < n; from += copiesPerWrite {
		batches = append(batches, from)
	}
	err = measure.Each(batches, copiers, func(from int) error {
		var puts []clientv3.Op
		for i := from; i < min(from+copiesPerWrite, n); i++ {
			puts = append(puts, clientv3.OpPut(r.Prefix()+Namespace+"/"+Name(i), object.named(Name(i))))
		}
		_, err := r.plane.Etcd().Txn(ctx).Then(puts...).Commit()
		return err
	})
	if err != nil {
		return err
	}
	for i := range n {
		r.names = append(r.names, Name(i))
	}
	return r.remove(ctx, first)
}

// template is an object as JSON, without its name and its UID.
type template struct{ before, between, after string }

func newTemplate(object []byte, name string) (template, error) {
	name = fmt.Sprintf(`"name":%q`, name)
	before, rest, found := strings.Cut(string(object), name)
	between, after, alsoFound := strings.Cut(rest, `"uid":"`)
	_, after, ends := strings.Cut(after, `"`)
	if !found || !alsoFound || !ends || bytes.Count(object, []byte(name)) != 1 {
		return template{}, errors.New("it does not have one name and a UID after it")
	}
	return template{before, between, after}, nil
}

func (t template) named(name string) string {
	return fmt.Sprintf(`%s"name":%q%s"uid":%q%s`, t.before, name, t.between, uuid.NewUUID(), t.after)
}
