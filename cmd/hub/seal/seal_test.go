package seal_test

import (
	"testing"

	"github.com/godwit-dev/godwit/cmd/hub/message"
	"github.com/godwit-dev/godwit/cmd/hub/seal"
)

func identity(t *testing.T) message.Identity {
	t.Helper()
	own, err := message.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// TestSeal: each change of the content, or of where it belongs, ends its proof.
//
// Matrix: H100.
func TestSeal(t *testing.T) {
	t.Parallel()
	own := identity(t)
	content := func() seal.Content {
		return seal.Content{Migration: "uid", Name: "m-state-0", Before: []string{"a", "b"}, Data: map[string][]byte{"clusters": []byte("[]"), "shards": []byte("1")}}
	}
	signature, digest := content().Sign(own), content().Digest()
	if !content().IsSigned(own.Key(), signature) {
		t.Error("the signature of the content is refused")
	}
	if content().IsSigned(identity(t).Key(), signature) {
		t.Error("another identity has signed it")
	}
	for name, test := range map[string]struct {
		change func(*seal.Content)
		// isCommitted means that the digest is still that of the content: it does not depend on what the content follows.
		isCommitted bool
	}{
		"Migration": {func(c *seal.Content) { c.Migration = "other" }, false},
		"Name":      {func(c *seal.Content) { c.Name = "m-state-1" }, false},
		"Value":     {func(c *seal.Content) { c.Data["clusters"] = []byte(`["prod"]`) }, false},
		"NewKey":    {func(c *seal.Content) { c.Data["source"] = nil }, false},
		"NoKey":     {func(c *seal.Content) { delete(c.Data, "shards") }, false},
		"OtherKey":  {func(c *seal.Content) { c.Data["shard"] = []byte("s1"); delete(c.Data, "shards") }, false},
		"Moved":     {func(c *seal.Content) { c.Data = map[string][]byte{"clusters": []byte("[]shards"), "": []byte("1")} }, false},
		"Before":    {func(c *seal.Content) { c.Before = []string{"ab"} }, true},
		"Older":     {func(c *seal.Content) { c.Before = []string{"a"} }, true},
		"First":     {func(c *seal.Content) { c.Before = nil }, true},
	} {
		changed := content()
		test.change(&changed)
		if changed.IsSigned(own.Key(), signature) {
			t.Errorf("%s: the signature is that of changed content", name)
		}
		if (changed.Digest() == digest) != test.isCommitted {
			t.Errorf("%s: has the digest of the content: %v", name, changed.Digest() == digest)
		}
	}
	if content().IsSigned(own.Key(), "") || content().IsSigned(own.Key(), "?") {
		t.Error("no signature is one")
	}
}
