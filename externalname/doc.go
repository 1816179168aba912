// Package externalname reads and writes external names: the annotation crossplane.io/external-name, with which a
// managed resource identifies a resource in an external system.
//
// A [Codec] writes the key of an external resource as a name and reads it back. Its key
// is a GUID ([GUID]), one string ([Text]), or a struct with several fields ([Compound]). The
// same rules check a key before it is written and after it is read, so that no key can
// become the name of a resource that can't be observed or deleted afterwards.
//
// These laws hold for every codec of this package, and the tests fuzz them:
//
//   - Parse(Format(key)) is the key, except for the letter case of segments that ignore it.
//   - Format(Parse(name)) is the name. Parse accepts no other name than the one that Format
//     writes, which is the canonical name.
//   - ParseLenient accepts names that a user may have written by hand. Format makes the
//     canonical name of what it returns.
//   - Two different keys have two different names.
//   - No input makes a codec panic. A name that is too long is refused before it is read.
//
// A name that needs no escaping is written byte for byte, so that names of existing
// providers, which join segments by slashes, stay valid. Only a slash or a percent sign
// within a segment, control characters and outer spaces are percent-escaped.
//
// A [Scheme] is a codec with the legacy forms of a kind's names, such as a name without an organization, or the ID of
// an operation.
//
// The package knows nothing of Kubernetes and imports the standard library only. Package
// externalname/crossplane uses it in reconcilers.
//
// # Reading order
//
// invalid.go has the error, and condition.go the reasons of conditions. escape.go, guid.go and rule.go implement
// segments. codec.go has the interface and the description of a name, and compound.go joins segments. single.go has the
// codecs of one segment, pattern.go describes names to programs without the codec, scheme.go adds legacy forms, and
// upjet.go is for providers that Upjet generates. A file uses only files before it.
package externalname
