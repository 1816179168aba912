package etcdverify

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Forms counts the objects of any resource by the form in which they are stored. The form of an encrypted
// object is what kube-apiserver writes in front of it, as in k8s:enc:aescbc:v1:key2: the provider and the name
// of the key, and for KMS v2 also the ID of its key. The form of any other object is its apiVersion, as in v1 or
// autoscaling/v2.
type Forms struct {
	Objects int64
	ByForm  map[string]int64
	// Unreadable counts the objects whose form is not known, and UnreadableWhy has the key of the first of them,
	// and why it could not be read. It has no part of the value.
	Unreadable    int64
	UnreadableWhy string
}

// Proven reports whether every object was read and is stored in this form.
func (f Forms) Proven(form string) bool { return f.Unreadable == 0 && f.ByForm[form] == f.Objects }

// Uniform reports whether every object was read and all are stored in the same form.
func (f Forms) Uniform() bool { return f.Unreadable == 0 && len(f.ByForm) <= 1 }

// specialFolders are the folders of resources that are not stored under their own name
// (SpecialDefaultResourcePrefixes of k8s.io/kubernetes/pkg/kubeapiserver).
var specialFolders = map[schema.GroupResource]string{
	{Resource: "replicationcontrollers"}:                "controllers",
	{Resource: "endpoints"}:                             "services/endpoints",
	{Resource: "nodes"}:                                 "minions",
	{Resource: "services"}:                              "services/specs",
	{Group: "networking.k8s.io", Resource: "ingresses"}: "ingress",
}

// Folder is the path below --etcd-prefix under which an API server stores a resource. grouped means that the
// resource is of a CRD: such resources are stored below their group.
func Folder(r schema.GroupResource, grouped bool) string {
	if folder, ok := specialFolders[r]; ok {
		return folder
	}
	switch r.Group {
	case "apiextensions.k8s.io", "apiregistration.k8s.io":
		grouped = true
	}
	if grouped {
		return r.Group + "/" + r.Resource
	}
	return r.Resource
}

// ScanForms counts the objects below a [Folder], of one namespace or of all. prefix is the API server's --etcd-prefix.
func ScanForms(ctx context.Context, kv KV, prefix, folder, namespace string) (Forms, error) {
	forms := Forms{ByForm: map[string]int64{}}
	err := scan(ctx, kv, path.Join("/", prefix, folder, namespace)+"/", func(p Pair) {
		forms.Objects++
		form, err := formOf(p.Value)
		if err == nil {
			forms.ByForm[form]++
			return
		}
		if forms.Unreadable++; forms.Unreadable == 1 {
			forms.UnreadableWhy = fmt.Sprintf("%s: %v", p.Key, err)
		}
	})
	return forms, err
}

// FormAt is the form of one object, by its key in etcd; empty if etcd has no such key, or the form is not known.
func FormAt(ctx context.Context, kv KV, key string) (string, error) {
	pairs, _, err := kv.Range(ctx, key, key+"\x00", 1, 0)
	if err != nil || len(pairs) == 0 {
		return "", err
	}
	form, err := formOf(pairs[0].Value)
	if errors.Is(err, errNoForm) {
		return "", nil
	}
	return form, err
}

// protobufPrefix is what kube-apiserver writes in front of a value in protobuf.
var protobufPrefix = []byte("k8s\x00")

// errNoForm has no part of the value, which may be a secret.
var errNoForm = errors.New("neither encrypted by kube-apiserver nor protobuf, JSON or CBOR of an object")

func formOf(value []byte) (string, error) {
	switch {
	case bytes.HasPrefix(value, encryptedPrefix):
		return encryption(value)
	case bytes.HasPrefix(value, protobufPrefix):
		// runtime.Unknown: field 1 is the TypeMeta, of which field 1 is the apiVersion.
		if version := field(field(value[len(protobufPrefix):], 1), 1); len(version) > 0 {
			return string(version), nil
		}
		return "", errNoForm
	}
	version, err := apiVersion(value)
	if err != nil || version == "" {
		return "", errNoForm
	}
	return version, nil
}

const (
	// encryptionParts are k8s, enc, the provider, its version and the name of the key, or of the KMS.
	encryptionParts = 5
	kmsV2           = "k8s:enc:kms:v2:"
	// kmsKeyID is the number of keyID in EncryptedObject (k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/v2).
	kmsKeyID = 2
)

// encryption is the form of an encrypted value.
func encryption(value []byte) (string, error) {
	parts := bytes.SplitN(value, []byte(":"), encryptionParts+1)
	if len(parts) <= encryptionParts {
		return "", errNoForm
	}
	form := string(bytes.Join(parts[:encryptionParts], []byte(":")))
	if strings.HasPrefix(form, kmsV2) {
		id := field(parts[encryptionParts], kmsKeyID)
		if len(id) == 0 {
			return "", errNoForm
		}
		form += ":" + string(id)
	}
	return form, nil
}

// field returns the value of the first field of a protobuf message with this number whose type is bytes; nil if
// there is none.
func field(message []byte, number uint64) []byte {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return nil
		}
		value, rest, ok := cutValue(tag&7, message[n:])
		switch {
		case !ok:
			return nil
		case tag&7 == lengthDelimited && tag>>3 == number:
			return value
		}
		message = rest
	}
	return nil
}

// Wire types of protobuf.
const (
	varint          = 0
	fixed64         = 1
	lengthDelimited = 2
	fixed32         = 5
)

// cutValue cuts the value of a field, without its length, from the rest of a message.
func cutValue(wireType uint64, message []byte) (value, rest []byte, ok bool) {
	size, start := uint64(0), 0
	switch wireType {
	case varint:
		_, start = binary.Uvarint(message)
	case fixed64:
		size = 8
	case fixed32:
		size = 4
	case lengthDelimited:
		size, start = binary.Uvarint(message)
	default:
		return nil, nil, false
	}
	if start < 0 || start == 0 && (wireType == varint || wireType == lengthDelimited) {
		return nil, nil, false
	}
	message = message[start:]
	if size > uint64(len(message)) {
		return nil, nil, false
	}
	return message[:size], message[size:], true
}
