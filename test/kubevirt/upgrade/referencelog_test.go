package upgrade_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/revision/reference"
)

var controllerRevisions = appsv1.SchemeGroupVersion.WithResource("controllerrevisions")

// referenceLog knows who refers to what in one namespace, and which references lead nowhere
// or to what can't be read. It reads again whatever a write may have changed, so
// that it can check after every write.
type referenceLog struct {
	client    dynamic.Interface
	namespace string

	mu        sync.Mutex
	entries   map[string]entry  // by resource and name
	revisions map[string]answer // by name; a write to a revision removes it from here
	broken    map[string]string // why, by referrer and path
	wrong     []string          // what our own writes broke
}

// answer is the server's for one revision.
type answer struct {
	revision *appsv1.ControllerRevision
	err      error
}

// entry is an object that refers to revisions.
type entry struct {
	uid        types.UID
	controller types.UID
	running    bool
	references []reference.Reference
}

func newReferenceLog(client dynamic.Interface, namespace string) *referenceLog {
	return &referenceLog{client: client, namespace: namespace, entries: map[string]entry{}, revisions: map[string]answer{}, broken: map[string]string{}}
}

// readers of what refers to revisions, by resource.
var readers = func() map[string]reference.Type {
	all := map[string]reference.Type{}
	for _, r := range (kubevirt.Family{}).Describe().Referrers {
		all[r.Resource.Resource] = r
	}
	return all
}()

// ours is called after each write of the upgrader's, others after each write of another client:
// only what we break is wrong.
func (l *referenceLog) ours(req *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := maps.Clone(l.broken)
	l.readAgain(req)
	for place, why := range l.broken {
		if before[place] == "" {
			l.wrong = append(l.wrong, fmt.Sprintf("after %s %s: %s: %s", req.Method, req.URL.Path, place, why))
		}
	}
}

func (l *referenceLog) others(req *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readAgain(req)
}

// unresolved is what is broken now, in order. It reads each revision anew.
func (l *referenceLog) unresolved() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.revisions)
	for key, e := range l.entries {
		for _, ref := range e.references {
			l.check(key, e, ref)
		}
	}
	var all []string
	for place, why := range l.broken {
		all = append(all, place+": "+why)
	}
	slices.Sort(all)
	return all
}

// readAgain reads what a write may have changed: /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME.
func (l *referenceLog) readAgain(req *http.Request) {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	if len(parts) < 6 || parts[4] != l.namespace {
		return
	}
	resource := schema.GroupVersionResource{Group: parts[1], Version: parts[2], Resource: parts[5]}
	name := createdName(req)
	if len(parts) > 6 {
		name = parts[6]
	}
	if resource.Resource == controllerRevisions.Resource {
		delete(l.revisions, name)
		if name == "" { // any number of them
			clear(l.revisions)
		}
	}
	if _, refers := readers[resource.Resource]; refers {
		l.read(resource, name)
	}
	for key, e := range l.entries {
		for _, ref := range e.references {
			// Whether a start revision counts hangs on who owns it.
			if key == resource.Resource+"/"+name || ref.Revision == name || ref.Fixed {
				l.check(key, e, ref)
			}
			if ref.Counterpart != nil {
				l.checkRestored(key, ref)
			}
		}
	}
}

func createdName(req *http.Request) string {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return ""
	}
	body, err := req.GetBody()
	if err != nil {
		return ""
	}
	text, err := io.ReadAll(body)
	var o metav1.PartialObjectMetadata
	if err != nil || json.Unmarshal(text, &o) != nil {
		return ""
	}
	return o.Name
}

// read finds what an object refers to now.
func (l *referenceLog) read(resource schema.GroupVersionResource, name string) {
	key := resource.Resource + "/" + name
	maps.DeleteFunc(l.broken, func(place, _ string) bool { return strings.HasPrefix(place, key+" ") })
	o, err := l.client.Resource(resource).Namespace(l.namespace).Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		delete(l.entries, key)
		return
	}
	if err != nil {
		l.broken[key+" "] = err.Error()
		return
	}
	h := readers[resource.Resource].Read(o)
	e := entry{uid: o.GetUID(), running: h.Running, references: h.References}
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		e.controller = owner.UID
	}
	l.entries[key] = e
}

func (l *referenceLog) check(key string, e entry, ref reference.Reference) {
	place := key + " " + ref.Path
	delete(l.broken, place)
	if ref.Fixed && !l.runs(e.controller) {
		return
	}
	if err := l.resolve(ref); err != nil {
		l.broken[place] = err.Error()
	}
}

// checkRestored: what a restore onto a machine that exists would look up has to be there.
func (l *referenceLog) checkRestored(key string, ref reference.Reference) {
	place := key + " " + ref.Path + ", restored"
	delete(l.broken, place)
	if _, exists := l.entries[ref.Counterpart.Resource.Resource+"/"+ref.Counterpart.Owner]; !exists {
		return
	}
	ref.Revision = ref.Counterpart.Revision(ref.Revision)
	if err := l.resolve(ref); err != nil {
		l.broken[place] = err.Error()
	}
}

func (l *referenceLog) runs(uid types.UID) bool {
	for _, e := range l.entries {
		if e.uid == uid {
			return e.running
		}
	}
	return false
}

func (l *referenceLog) resolve(ref reference.Reference) error {
	there, known := l.revisions[ref.Revision]
	if !known {
		there.revision, there.err = l.readRevision(ref.Revision)
		if there.err == nil || apierrors.IsNotFound(there.err) {
			l.revisions[ref.Revision] = there
		}
	}
	if there.err != nil {
		return there.err
	}
	_, err := (kubevirt.Family{}).Decode(there.revision, ref.Expected)
	return err
}

func (l *referenceLog) readRevision(name string) (*appsv1.ControllerRevision, error) {
	o, err := l.client.Resource(controllerRevisions).Namespace(l.namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	r := &appsv1.ControllerRevision{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(without(o, "data").Object, r); err != nil {
		return nil, err
	}
	r.Data.Raw, err = json.Marshal(o.Object["data"])
	return r, err
}

func without(o *unstructured.Unstructured, field string) *unstructured.Unstructured {
	o = o.DeepCopy()
	unstructured.RemoveNestedField(o.Object, field)
	return o
}
