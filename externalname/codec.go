package externalname

import "strings"

// DefaultMaxBytes is the length of a name that Crossplane's providers agree on. Keys such as
// distinguished names can be longer: see [CompoundCodec.MaxBytes].
const DefaultMaxBytes = 512

// Codec writes the key of an external resource as a name and reads it back.
type Codec[K any] interface {
	// Format returns the canonical name of a key, or an [InvalidError] if the key can't
	// become a name.
	Format(key K) (string, error)
	// Parse reads a canonical name. It returns an [InvalidError] for any other text.
	Parse(name string) (K, error)
	// ParseLenient reads also a name that differs from the canonical one in outer
	// spaces, in the letter case of segments that ignore it, in escapes that are not
	// needed, or in missing optional segments at the end.
	ParseLenient(name string) (K, error)
	// Describe returns what names look like.
	Describe() Shape
}

// Shape describes the names of a codec. The reference of a provider is generated from it.
type Shape struct {
	// Segments are in the order of the name.
	Segments []SegmentShape `json:"segments"`
	// MaxBytes is the longest name.
	MaxBytes int `json:"maxBytes"`
}

// SegmentShape describes one segment of a name.
type SegmentShape struct {
	// Name identifies the segment in errors and in the reference.
	Name string `json:"name"`
	// Expected says what the text looks like, such as "a GUID" or "one of dev, prod".
	Expected string `json:"expected"`
	// Values are the allowed ones, if the segment has an enumeration.
	Values []string `json:"values,omitempty"`
	// GUID means that the segment is a GUID.
	GUID bool `json:"guid,omitempty"`
	// Hex32 means that the GUID is written without hyphens.
	Hex32 bool `json:"hex32,omitempty"`
	// Optional segments may be empty.
	Optional bool `json:"optional,omitempty"`
	// Mutable segments may change during the life of the external resource.
	Mutable bool `json:"mutable,omitempty"`
	// FoldsCase means that letter case has no meaning: names have lower case.
	FoldsCase bool `json:"foldsCase,omitempty"`
}

// String returns the pattern of a name, such as <group>/<member>. Optional segments are in
// brackets; their slashes are always written.
func (s Shape) String() string {
	parts := make([]string, len(s.Segments))
	for i, segment := range s.Segments {
		parts[i] = "<" + segment.Name + ">"
		if segment.Optional {
			parts[i] = "[" + parts[i] + "]"
		}
	}
	return strings.Join(parts, separator)
}

// Mutable reports whether a part of the key may change during the life of the external
// resource, so that an update may change the name.
func (s Shape) Mutable() bool {
	for _, segment := range s.Segments {
		if segment.Mutable {
			return true
		}
	}
	return false
}
