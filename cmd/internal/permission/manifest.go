package permission

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Role has the rules for one namespace, or for the whole cluster if the namespace is empty.
type Role struct {
	Namespace string
	Rules     []rbacv1.PolicyRule
}

// Add appends rules to the role of a namespace.
func Add(roles []Role, namespace string, rules ...rbacv1.PolicyRule) []Role {
	for i := range roles {
		if roles[i].Namespace == namespace {
			roles[i].Rules = append(roles[i].Rules, rules...)
			return roles
		}
	}
	return append(roles, Role{namespace, rules})
}

// Roles returns the roles that grant exactly the permissions. Resources of a group with the same verbs share one rule.
func Roles(all []Permission) []Role {
	var roles []Role
	for _, p := range merged(all) {
		i := slices.IndexFunc(roles, func(r Role) bool { return r.Namespace == p.Namespace })
		if i < 0 {
			roles, i = append(roles, Role{Namespace: p.Namespace}), len(roles)
		}
		r := &roles[i]
		same := slices.IndexFunc(r.Rules, func(have rbacv1.PolicyRule) bool {
			return have.APIGroups[0] == p.Resource.Group && slices.Equal(have.Verbs, p.Verbs) && slices.Equal(have.ResourceNames, p.Names)
		})
		if same >= 0 {
			r.Rules[same].Resources = append(r.Rules[same].Resources, p.Resource.Resource)
			continue
		}
		r.Rules = append(r.Rules, rbacv1.PolicyRule{
			APIGroups: []string{p.Resource.Group}, Resources: []string{p.Resource.Resource}, ResourceNames: p.Names, Verbs: p.Verbs,
		})
	}
	return roles
}

// Bind returns the roles and their bindings to subjects. name returns the name of a role and of its binding.
func Bind(roles []Role, subjects []rbacv1.Subject, name func(Role) string) []client.Object {
	var objects []client.Object
	for _, r := range roles {
		meta := metav1.ObjectMeta{Name: name(r), Namespace: r.Namespace}
		if r.Namespace == "" {
			objects = append(objects,
				&rbacv1.ClusterRole{TypeMeta: typeMeta("ClusterRole"), ObjectMeta: meta, Rules: r.Rules},
				&rbacv1.ClusterRoleBinding{TypeMeta: typeMeta("ClusterRoleBinding"), ObjectMeta: meta, RoleRef: roleRef("ClusterRole", meta.Name), Subjects: subjects})
			continue
		}
		objects = append(objects,
			&rbacv1.Role{TypeMeta: typeMeta("Role"), ObjectMeta: meta, Rules: r.Rules},
			&rbacv1.RoleBinding{TypeMeta: typeMeta("RoleBinding"), ObjectMeta: meta, RoleRef: roleRef("Role", meta.Name), Subjects: subjects})
	}
	return objects
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

// Manifest returns the objects that grant subjects the permissions of a command. The name of each role ends in a hash
// of its rules and subjects, so a manifest never overwrites the permissions of another one.
func Manifest(c Command, s Scope, subjects []rbacv1.Subject) ([]client.Object, error) {
	roles := Roles(c.Permissions(s))
	names := map[string]string{}
	for _, r := range roles {
		text, err := json.Marshal(struct {
			Rules    []rbacv1.PolicyRule
			Subjects []rbacv1.Subject
		}{r.Rules, subjects})
		if err != nil {
			return nil, fmt.Errorf("name the role of %s: %w", c.Name, err)
		}
		sum := sha256.Sum256(text)
		names[r.Namespace] = strings.Join([]string{"godwit", c.Name, nameOf(subjects), hex.EncodeToString(sum[:])[:8]}, "-")
	}
	return Bind(roles, subjects, func(r Role) string { return names[r.Namespace] }), nil
}

// maxSubject bounds the readable part of a role's name.
const maxSubject = 40

// nameOf returns the name of the first subject, reduced to characters that are valid in an object's name.
func nameOf(subjects []rbacv1.Subject) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(subjects[0].Name))
	return strings.Trim(name[:min(len(name), maxSubject)], "-")
}

// Write prints objects as YAML documents for `kubectl apply -f -`.
func Write(w io.Writer, objects []client.Object) error {
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return fmt.Errorf("encode %s %s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

const serviceAccountPrefix = "system:serviceaccount:"

// Subject returns the subject of a user name in the API server.
func Subject(user string) rbacv1.Subject {
	namespace, name, ok := strings.Cut(strings.TrimPrefix(user, serviceAccountPrefix), ":")
	if ok && strings.HasPrefix(user, serviceAccountPrefix) {
		return ServiceAccount(namespace, name)
	}
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}
}

// Group is all users of a group.
func Group(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

// ServiceAccount is one of a namespace.
func ServiceAccount(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}
