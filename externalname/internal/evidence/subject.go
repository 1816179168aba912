package evidence

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Subject is what is compared to find managed resources of one external resource. It is small: a cluster may have many.
type Subject struct {
	// Kind is the kind in lower case, and Group its API group without the label m by which a namespaced kind of Crossplane v2
	// differs from the cluster-scoped one of v1.
	Kind, Group string
	// Names are the external name in its canonical form, and the one under which package crossplane has last seen it.
	Names []string
	// V2 means that the API group has the label m.
	V2 bool
	// Default means that the external name is the name of the managed resource, which crossplane-runtime writes by default: it may
	// identify nothing.
	Default bool
	// Account is the ProviderConfig: its kind, its namespace and its name. Config is its name alone.
	Account, Config string
	// Legacy means that the reference to the ProviderConfig has no kind, as in Crossplane v1.
	Legacy bool
	// IDs are the fields of status.atProvider that identify the external resource, by the name of the field in lower case.
	IDs map[string]string

	observed, spec, place []field
}

// field is a hash of the name and of the value of a field.
type field struct{ name, value uint64 }

// Volatile are fields of status.atProvider that change without a change of the identity, in lower case.
var Volatile = []string{
	"etag", "generation", "lastmodified", "lastmodifiedat", "lastmodifiedtime", "lastupdated", "lastupdatedat", "lastupdatetime",
	"modifiedat", "phase", "resourceversion", "state", "status", "updatedat", "updatetime",
}

// idFields are fields of status.atProvider that identify an external resource of a kind, in lower case.
var idFields = []string{"arn", "externalid", "guid", "id", "resourceid", "selflink", "uid", "uuid"}

// Proving returns the fields of status.atProvider that prove which external resource was observed: identifiers that are unique in the
// world, or that do not follow from the external name. A provider finds a resource of the same name in another account as well.
func Proving(o *unstructured.Unstructured) []string {
	name := canonical(o.GetAnnotations()[AnnotationName])
	observed, _, _ := unstructured.NestedMap(o.Object, "status", "atProvider")
	var fields []string
	for field, value := range observed {
		text, isText := value.(string)
		if text = canonical(text); !isText || text == "" || !slices.Contains(idFields, strings.ToLower(field)) {
			continue
		}
		if Unique(text) || name == "" || !strings.Contains(text, name) && !strings.Contains(name, text) {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	return fields
}

// placeFields are fields of spec.forProvider that say where the external resource is, in lower case: the same name in another place
// is another external resource. So do fields whose name ends with placeEnds.
var (
	placeFields = []string{"account", "cluster", "database", "location", "manifest", "namespace", "org", "organization", "owner", "parent", "project", "region", "space", "tenant", "zone"}
	placeEnds   = []string{"guid", "id", "ids", "name", "namespace"}
	placeless   = []string{"displayname", "name"} // of the external resource itself, which an update may change
)

// SubjectOf reads a managed resource.
func SubjectOf(o *unstructured.Unstructured) Subject {
	gvk := o.GroupVersionKind()
	s := Subject{Kind: strings.ToLower(gvk.Kind), Group: familyOf(gvk.Group)}
	s.V2, s.Default = s.Group != gvk.Group, o.GetAnnotations()[AnnotationName] == o.GetName()
	for _, name := range []string{o.GetAnnotations()[AnnotationName], o.GetAnnotations()[AnnotationBound]} {
		if name = canonical(name); name != "" && !slices.Contains(s.Names, name) {
			s.Names = append(s.Names, name)
		}
	}
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "providerConfigRef", "kind")
	s.Config, _, _ = unstructured.NestedString(o.Object, "spec", "providerConfigRef", "name")
	s.Legacy, s.Account = kind == "", kind+"/"+s.Config
	if kind == "ProviderConfig" {
		s.Account = o.GetNamespace() + "/" + s.Config
	}
	observed, _, _ := unstructured.NestedMap(o.Object, "status", "atProvider")
	for name, value := range observed {
		name = strings.ToLower(name)
		if slices.Contains(Volatile, name) {
			continue
		}
		if text, ok := value.(string); ok && text != "" && slices.Contains(idFields, name) {
			if s.IDs == nil {
				s.IDs = map[string]string{}
			}
			s.IDs[name] = canonical(text)
		}
		s.observed = append(s.observed, hashOf(name, value))
	}
	spec, _, _ := unstructured.NestedMap(o.Object, "spec", "forProvider")
	for name, value := range spec {
		name = strings.ToLower(name)
		s.spec = append(s.spec, hashOf(name, value))
		if isPlace(name) {
			s.place = append(s.place, hashOf(name, value))
		}
	}
	return s
}

// familyOf returns the API group without the label m.
func familyOf(group string) string {
	labels := slices.DeleteFunc(strings.Split(group, "."), func(label string) bool { return label == "m" })
	return strings.Join(labels, ".")
}

func isPlace(name string) bool {
	if slices.Contains(placeless, name) {
		return false
	}
	return slices.Contains(placeFields, name) || slices.ContainsFunc(placeEnds, func(end string) bool { return strings.HasSuffix(name, end) })
}

var seed = maphash.MakeSeed()

func hashOf(name string, value any) field {
	if text, ok := value.(string); ok {
		value = canonical(text)
	}
	text, err := json.Marshal(value) // sorts the keys of maps
	if err != nil {
		return field{}
	}
	return field{maphash.String(seed, name), maphash.Bytes(seed, text)}
}

// canonical returns the form in which two spellings of a name are equal: without outer spaces, and in lower case if the name is
// one whose case means nothing.
func canonical(name string) string {
	name = strings.TrimSpace(name)
	if lower := strings.ToLower(name); isUUID(lower) || strings.HasPrefix(lower, azure) {
		return strings.TrimSuffix(lower, "/")
	}
	return name
}

// azure is the beginning of resource IDs of Azure, whose case means nothing.
const azure = "/subscriptions/"

// Unique reports whether no external resource of another account has the identifier: an ARN, a resource ID of Azure or a UUID, in
// its canonical form.
func Unique(id string) bool {
	return strings.HasPrefix(id, azure) || isUUID(id) && strings.Trim(id, "0-") != "" || strings.HasPrefix(id, "arn:") && strings.Count(id, ":") >= arnColons
}

// arnColons are the separators of an ARN: arn:partition:service:region:account:resource.
const arnColons = 5

// isUUID reports whether a text in lower case is a UUID.
func isUUID(text string) bool {
	if len(text) != len("00000000-0000-0000-0000-000000000000") {
		return false
	}
	for i, c := range []byte(text) {
		if hyphen := i == 8 || i == 13 || i == 18 || i == 23; hyphen != (c == '-') || !hyphen && !strings.ContainsRune("0123456789abcdef", rune(c)) {
			return false
		}
	}
	return true
}
