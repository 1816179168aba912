package externalname_test

import (
	"errors"
	"fmt"

	"github.com/godwit-dev/godwit/externalname"
)

// membership is the key of a member of a group.
type membership struct {
	Group  string
	Member string
}

var memberships = externalname.Compound(
	externalname.Field("group", func(k *membership) *string { return &k.Group }, externalname.IsGUID()),
	externalname.Field("member", func(k *membership) *string { return &k.Member }, externalname.FoldCase()),
)

func Example() {
	name, err := memberships.Format(membership{
		Group:  "0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11",
		Member: "cn=Jane/Doe,ou=People,dc=example",
	})
	fmt.Println(name, err)
	key, err := memberships.Parse(name)
	fmt.Println(key.Member, err)
	// Output:
	// 0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11/cn=jane%2Fdoe,ou=people,dc=example <nil>
	// cn=jane/doe,ou=people,dc=example <nil>
}

func ExampleGUID() {
	_, err := externalname.GUID().Parse("urn:uuid:0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11")
	var invalid *externalname.InvalidError
	if errors.As(err, &invalid) {
		fmt.Println(invalid.Segment, invalid.Reason)
	}
	fmt.Println(err)
	// Output:
	// guid NotGUID
	// external name, segment "guid": NotGUID: got "urn:uuid:0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11", expected a GUID such as 0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11
}

func ExampleCompoundCodec_Describe() {
	shape := memberships.Describe()
	fmt.Println(shape)
	for _, segment := range shape.Segments {
		fmt.Printf("%s: %s\n", segment.Name, segment.Expected)
	}
	// Output:
	// <group>/<member>
	// group: a GUID such as 0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11
	// member: text
}

// A provider that once wrote the name of the managed resource, as crossplane-runtime does by
// default, declares the form. Such a name is looked up, and replaced by the GUID.
func ExampleScheme() {
	scheme := externalname.Scheme[string]{
		Codec:  externalname.GUID(),
		Legacy: []externalname.Form[string]{externalname.LegacyObjectName[string]()},
	}
	for _, name := range []string{"0B4B3A1C-6a5d-4f0e-8d2c-9d8f2f8d1a11", "jane", "john"} {
		reading, err := scheme.Read(name, "jane")
		fmt.Println(reading.Class, reading.Form, reading.Name, err)
	}
	// Output:
	// Lenient  0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11 <nil>
	// Legacy ObjectName  <nil>
	//    external name, segment "guid": NotGUID: got "john", expected a GUID such as 0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11
}
