package externalname_test

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ldapv1 "github.com/godwit-dev/godwit/examples/provider-ldap/api/v1"
	"github.com/godwit-dev/godwit/examples/provider-ldap/crds"
	ldap "github.com/godwit-dev/godwit/examples/provider-ldap/directory"
	"github.com/godwit-dev/godwit/examples/provider-ldap/provider"
	"github.com/godwit-dev/godwit/externalname/crossplane"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// providerCRDs are those of examples/provider-ldap.
func providerCRDs() []*apiextensionsv1.CustomResourceDefinition {
	var list []*apiextensionsv1.CustomResourceDefinition
	files, err := crds.Files.ReadDir(".")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		data, err := crds.Files.ReadFile(file.Name())
		if err != nil {
			panic(err)
		}
		decoded, err := controlplane.DecodeCRDs(data)
		if err != nil {
			panic(err)
		}
		list = append(list, decoded...)
	}
	return list
}

// directoryWorld is a world for examples/provider-ldap: a ProviderConfig, and a part of the directory server of its own.
type directoryWorld struct {
	*world

	config ldap.Config
	at     provider.Directory
}

func newDirectoryWorld(t *testing.T) *directoryWorld {
	t.Helper()
	needsServer(t)
	w := &directoryWorld{world: newWorld(t)}
	w.config = newBase(t, w.namespace)
	w.at = provider.Configured(w.client)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "directory", Namespace: w.namespace}, StringData: map[string]string{"password": w.config.Password}})
	pc := &ldapv1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: w.namespace}}
	pc.Spec = ldapv1.ProviderConfigSpec{URL: w.config.URL, BaseDN: w.config.BaseDN, BindDN: w.config.BindDN}
	pc.Spec.PasswordSecretRef.Name, pc.Spec.PasswordSecretRef.Key = "directory", "password"
	w.create(pc)
	return w
}

// through has the provider reach the directory by a proxy.
func (w *directoryWorld) through(p *proxy) {
	w.t.Helper()
	pc := &ldapv1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: w.namespace}}
	w.patch(pc, fmt.Sprintf(`{"spec":{"url":"ldap://%s"}}`, p.listener.Addr()))
}

func spec(policies ...xpv2.ManagementAction) xpv2.ManagedResourceSpec {
	return xpv2.ManagedResourceSpec{
		ProviderConfigReference: &xpv2.ProviderConfigReference{Kind: "ProviderConfig", Name: "default"},
		ManagementPolicies:      policies,
	}
}

// ldapPerson makes a Person, which is not created.
func (w *directoryWorld) ldapPerson(uid string) *ldapv1.Person {
	p := &ldapv1.Person{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(uid), Namespace: w.namespace}}
	p.Spec = ldapv1.PersonSpec{ManagedResourceSpec: spec(), ForProvider: ldapv1.PersonParameters{Parent: w.config.BaseDN, UID: uid, CommonName: uid, Surname: "Doe"}}
	return p
}

// with uses a client of the directory that no fault befalls.
func (w *directoryWorld) with(use func(*ldap.Client) error) {
	w.t.Helper()
	c := ldap.New(w.config)
	if err := errors.Join(use(c), c.Close(w.t.Context())); err != nil {
		w.t.Error(err)
	}
}

// addPerson adds an entry as another client does.
func (w *directoryWorld) addPerson(uid, mail string) (id string) {
	w.t.Helper()
	w.with(func(c *ldap.Client) (err error) {
		id, err = c.Add(w.t.Context(), ldap.Entry{DN: ldap.Join("uid", uid, w.config.BaseDN), Attributes: map[string][]string{
			"objectClass": {"inetOrgPerson"}, "uid": {uid}, "cn": {uid}, "sn": {"Doe"}, "mail": {mail},
		}}, rand.Text())
		return err
	})
	return id
}

// setTitle changes an entry as another client does.
func (w *directoryWorld) setTitle(id, title string) {
	w.t.Helper()
	w.with(func(c *ldap.Client) error {
		e, err := c.Get(w.t.Context(), id)
		if err != nil {
			return err
		}
		return c.Write(w.t.Context(), e, ldap.Entry{DN: e.DN, Attributes: map[string][]string{"title": {title}}})
	})
}

// addGroup adds a group with members.
func (w *directoryWorld) addGroup(cn string, members ...string) (id string) {
	w.t.Helper()
	w.with(func(c *ldap.Client) (err error) {
		id, err = c.Add(w.t.Context(), ldap.Entry{DN: ldap.Join("cn", cn, w.config.BaseDN), Attributes: map[string][]string{
			"objectClass": {"groupOfNames"}, "cn": {cn}, "member": append([]string{""}, members...),
		}}, rand.Text())
		return err
	})
	return id
}

// ids are the entries of a class.
func (w *directoryWorld) ids(class string) (ids []string) {
	w.t.Helper()
	w.with(func(c *ldap.Client) error {
		for id, err := range c.IDs(w.t.Context(), class) {
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return nil
	})
	return ids
}

// members are the DNs in a group.
func (w *directoryWorld) members(group string) (dns []string) {
	w.t.Helper()
	w.with(func(c *ldap.Client) error {
		e, err := c.Get(w.t.Context(), group)
		if err != nil {
			return err
		}
		for _, m := range e.Members() {
			dns = append(dns, m.DN)
		}
		return nil
	})
	return dns
}

// awaitObject waits until the object fits.
func awaitObject[M resource.Managed](w *world, o M, what string, fits func(M) bool) {
	w.t.Helper()
	w.await(what, func() string {
		if fits(get(w, o)) {
			return ""
		}
		return fmt.Sprintf("annotations %v, Ready %+v, Synced %+v", o.GetAnnotations(), o.GetCondition(xpv2.TypeReady), o.GetCondition(xpv2.TypeSynced))
	})
}

func isBound[M resource.Managed](o M) bool {
	name := meta.GetExternalName(o)
	return synced(o) && name != "" && o.GetAnnotations()[crossplane.AnnotationBoundName] == name
}

func isRefused[M resource.Managed](texts ...string) func(M) bool {
	return func(o M) bool {
		c := o.GetCondition(xpv2.TypeSynced)
		for _, text := range texts {
			if !strings.Contains(c.Message, text) {
				return false
			}
		}
		return c.Status == corev1.ConditionFalse
	}
}

func newRef(name string) *xpv2.NamespacedReference { return &xpv2.NamespacedReference{Name: name} }

func mergePatch(body string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(body))
}

// Operations of LDAP, by the tag of their messages (RFC 4511).
const (
	searchRequest   = 0x63
	modifyRequest   = 0x66
	modifyResponse  = 0x67
	addRequest      = 0x68
	addResponse     = 0x69
	deleteRequest   = 0x4a
	modifyDNRequest = 0x6c
)

// proxy passes LDAP messages on, and cuts the connection where a test says so.
type proxy struct {
	listener net.Listener
	to       string

	mu sync.Mutex
	// cut is asked before a message is passed on; true cuts the connection in its place.
	cut func(tag byte) bool
}

func newProxy(t *testing.T, to string, cut func(tag byte) bool) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, to: to, cut: cut}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // The test is over.
			}
			go p.serve(conn)
		}
	}()
	return p
}

func (p *proxy) serve(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer to.Close()
	ended := make(chan struct{}, 2)
	go p.pass(to, from, ended)
	go p.pass(from, to, ended)
	<-ended
}

// pass passes messages on one by one.
func (p *proxy) pass(to io.Writer, from io.Reader, ended chan<- struct{}) {
	defer func() { ended <- struct{}{} }()
	for {
		message, tag, err := readMessage(from)
		if err != nil {
			return
		}
		p.mu.Lock()
		cut := p.cut(tag)
		p.mu.Unlock()
		if cut {
			return
		}
		if _, err := to.Write(message); err != nil {
			return
		}
	}
}

// readMessage reads a sequence of BER, of which the second element is the operation.
func readMessage(from io.Reader) (message []byte, tag byte, err error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, 0, err
	}
	message = head
	length := int(head[1])
	if length&0x80 != 0 {
		more := make([]byte, length&0x7f)
		if _, err := io.ReadFull(from, more); err != nil {
			return nil, 0, err
		}
		message = append(message, more...)
		length = int(binary.BigEndian.Uint64(append(make([]byte, 8-len(more)), more...)))
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(from, body); err != nil {
		return nil, 0, err
	}
	// The first element is the ID of the message.
	if len(body) < 2 || len(body) < int(body[1])+3 {
		return nil, 0, io.ErrUnexpectedEOF
	}
	return append(message, body...), body[2+int(body[1])], nil
}
