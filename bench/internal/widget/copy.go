package widget

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// Copy creates one object, and stores n copies of it in etcd, each with its own name and UID.
func (r *Resource) Copy(ctx context.Context, n int) error {
	const first = "w-first"
	if err := r.create(ctx)(first); err != nil {
		return err
	}
	key := r.Prefix() + Namespace + "/" + first
	stored, err := r.cluster.Etcd().Get(ctx, key)
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
	if err := r.cluster.Store(ctx, n, func(i int) (key, value string) {
		return r.Prefix() + Namespace + "/" + Name(i), object.named(Name(i))
	}); err != nil {
		return err
	}
	r.addNames(n)
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
