package externalname

// GUID returns the codec of names that are a GUID, such as
// 0b4b3a1c-6a5d-4f0e-8d2c-9d8f2f8d1a11. It accepts neither braces nor urn:uuid: nor 32 digits
// without hyphens; [Hex32] is for systems that write the latter. Letter case has no meaning
// in a GUID: Format and ParseLenient accept upper case, and names have lower case.
func GUID(options ...GUIDOption) CompoundCodec[string] {
	return Compound(Field("guid", self, IsGUID(options...)))
}

// Text returns the codec of names that are one string, such as the name of a bucket.
func Text(rules ...Rule) CompoundCodec[string] {
	return Compound(Field("name", self, rules...))
}

func self(key *string) *string { return key }
