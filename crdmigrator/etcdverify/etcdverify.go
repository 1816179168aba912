// Package etcdverify counts at which API versions the objects of a custom
// resource are stored. It reads etcd itself: only this proves a storage migration
// without an API server. For any other resource, it counts with which key the
// objects are encrypted, or at which apiVersion they are stored.
//
// It reads only keys and values, in bounded pages, and never writes. The caller
// supplies the etcd client ([KV]), so that embedding this package adds no module.
//
// Read etcdverify.go for custom resources, then forms.go for all.
package etcdverify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// DefaultPrefix is kube-apiserver's default of --etcd-prefix.
const DefaultPrefix = "/registry"

// pageKeys bounds one range read. etcd allows a value of 1.5 MiB by default,
// which bounds a page at 150 MiB and makes it a few hundred kilobytes usually.
const pageKeys = 100

// KV reads etcd. It is the part of an etcd client that this package needs.
type KV interface {
	// Range returns at most limit pairs with from <= key < to, in key order, and
	// the revision that it read. All reads of one scan must see the same revision:
	// the first call has revision 0, which means the newest, and the others have
	// the revision that the first call returned.
	Range(ctx context.Context, from, to string, limit, revision int64) (pairs []Pair, atRevision int64, err error)
}

// Pair is one key of etcd and its value.
type Pair struct {
	Key   string
	Value []byte
}

// Count says at which versions the objects of one resource are stored.
type Count struct {
	Objects int64
	// ByVersion counts the objects whose stored form could be read.
	ByVersion map[string]int64
	// Unreadable counts the other objects, and UnreadableWhy has the key of the
	// first of them, and why it could not be read.
	Unreadable    int64
	UnreadableWhy string
	// Namespaced counts the objects whose key in etcd has a namespace.
	Namespaced int64
}

// Proven reports whether every object was read and is stored at version.
func (c Count) Proven(version string) bool {
	return c.Unreadable == 0 && c.ByVersion[version] == c.Objects
}

// Scan counts the objects of one custom resource. prefix is the API server's
// --etcd-prefix.
func Scan(ctx context.Context, kv KV, prefix string, r schema.GroupResource) (Count, error) {
	count := Count{ByVersion: map[string]int64{}}
	from := path.Join("/", prefix, r.Group, r.Resource) + "/"
	err := scan(ctx, kv, from, func(p Pair) {
		if strings.Contains(strings.TrimPrefix(p.Key, from), "/") {
			count.Namespaced++
		}
		count.add(p, r.Group)
	})
	return count, err
}

// scan visits every pair below a path, all of one revision.
func scan(ctx context.Context, kv KV, from string, visit func(Pair)) error {
	to := from[:len(from)-1] + "0" // '0' follows '/'
	var revision int64
	for {
		pairs, at, err := kv.Range(ctx, from, to, pageKeys, revision)
		if err != nil {
			return fmt.Errorf("read %s from etcd: %w", from, err)
		}
		for _, p := range pairs {
			visit(p)
		}
		if len(pairs) < pageKeys {
			return nil
		}
		from, revision = pairs[len(pairs)-1].Key+"\x00", at
	}
}

func (c *Count) add(p Pair, group string) {
	c.Objects++
	version, err := storedVersion(p.Value, group)
	if err != nil {
		if c.Unreadable++; c.Unreadable == 1 {
			c.UnreadableWhy = fmt.Sprintf("%s: %v", p.Key, err)
		}
		return
	}
	c.ByVersion[version]++
}

var (
	// kube-apiserver writes these prefixes in front of a value.
	encryptedPrefix = []byte("k8s:enc:")
	cborPrefix      = []byte{0xd9, 0xd9, 0xf7} // RFC 8949: self-described CBOR
)

var errEncrypted = errors.New("encrypted at rest; what is stored can only be told with the API server's encryption key")

// storedVersion reads the version from an object's stored form.
func storedVersion(value []byte, group string) (string, error) {
	if bytes.HasPrefix(value, encryptedPrefix) {
		return "", errEncrypted
	}
	version, err := apiVersion(value)
	if err != nil {
		return "", fmt.Errorf("neither JSON nor CBOR: %w", err)
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil || gv.Group != group || gv.Version == "" {
		return "", fmt.Errorf("apiVersion %q is not of group %s", version, group)
	}
	return gv.Version, nil
}

// apiVersion reads the field apiVersion of an object in JSON or CBOR.
func apiVersion(value []byte) (string, error) {
	if !bytes.HasPrefix(value, cborPrefix) {
		var object struct {
			APIVersion string `json:"apiVersion"`
		}
		err := json.Unmarshal(value, &object)
		return object.APIVersion, err
	}
	// The decoder for concrete types refuses other fields, so decode all of them.
	var fields map[string]any
	err := direct.Unmarshal(value[len(cborPrefix):], &fields)
	version, _ := fields["apiVersion"].(string)
	return version, err
}
