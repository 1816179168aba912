package resource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
)

const (
	// JournalName is the ConfigMap in which a run keeps what it has done, until it is done with everything.
	JournalName = "godwit-resource-run"
	journalKey  = "journal.json"
)

// JournalResource is the resource of the journal.
var JournalResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// ErrJournalTaken reports that another run writes the journal.
var ErrJournalTaken = errors.New(ReasonJournalTaken.Name + ": another run has begun since, and writes the same journal: let one of them end")

// checkpoint is how far a run is with one resource, in one namespace or in all.
type checkpoint struct {
	// ResourceVersion is that of the first page. An API server that has the change wrote every newer object.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Cursor is the key, namespace and name, up to which every object is done.
	Cursor string `json:"cursor,omitempty"`
	// Complete means that every object is done.
	Complete bool `json:"complete,omitempty"`
}

// record is the content of the journal. It has names of resources and objects, and nothing of their content.
type record struct {
	// Servers are the processes of the API servers as their leases name them. A process that started later
	// may have another configuration, which voids the record.
	Servers []string `json:"servers"`
	// Configuration is the hash that the run was given; empty for none.
	Configuration string `json:"configuration,omitempty"`
	// Resources are checkpoints by resource and namespace.
	Resources map[string]checkpoint `json:"resources"`
}

// storedRecord is a record as the ConfigMap has it.
type storedRecord struct {
	Format int `json:"format"`
	record
}

// holds reports whether the record is evidence for a run now.
func (r record) holds(servers []string, configuration string) bool {
	return len(servers) > 0 && slices.Equal(r.Servers, servers) && r.Configuration == configuration
}

// journal is the record of a run, in memory and in its ConfigMap.
type journal struct {
	client    *request.Client
	namespace string
	// retry retries a request. The retry of a plan does not wait for a permission.
	retry   func(context.Context, func(context.Context) error) error
	version string // resourceVersion of the ConfigMap; empty before the first save
	record  record
}

func (j *journal) path() []string {
	return kube.ObjectPath(JournalResource, &metav1.ObjectMeta{Namespace: j.namespace, Name: JournalName})
}

// load reads the record of an earlier run. It is zero if there is none, or none that can be parsed.
func (j *journal) load(ctx context.Context) (record, error) {
	var earlier record
	stored, err := j.read(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return earlier, nil
	case err != nil:
		return earlier, fmt.Errorf("read the journal, configmap %s/%s: %w", j.namespace, JournalName, err)
	}
	j.version = stored.ResourceVersion
	what := fmt.Sprintf("key %s of configmap %s/%s", journalKey, j.namespace, JournalName)
	if err := format.Check(what, []byte(stored.Data[journalKey])); err != nil {
		return earlier, fmt.Errorf("%s: %w; %s. If it is gone for good, delete the configmap: the run then starts from the beginning", ReasonNewerFormat, err, format.Do)
	}
	if err := json.Unmarshal([]byte(stored.Data[journalKey]), &earlier); err != nil {
		return record{}, nil //nolint:nilerr // what can't be read can't be trusted: the run starts anew
	}
	return earlier, nil
}

// Left is a resource in the journal of an interrupted run.
type Left struct {
	// Name is the resource with its group, and Namespace that of its objects; empty for all.
	Name, Namespace string
	// Complete means that every object is written.
	Complete bool
}

func (j *journal) read(ctx context.Context) (corev1.ConfigMap, error) {
	var stored corev1.ConfigMap
	err := j.retry(ctx, func(ctx context.Context) error {
		body, err := kube.Body(kube.Do(ctx, j.client.Get().AbsPath(j.path()...).SetHeader("Accept", runtime.ContentTypeJSON)))
		if err != nil {
			return err
		}
		return json.Unmarshal(body, &stored)
	})
	return stored, err
}

// save writes the record. It returns [ErrJournalTaken] if another run has written the journal since.
func (j *journal) save(ctx context.Context) error {
	text, err := json.Marshal(storedRecord{Format: format.Current, record: j.record})
	if err != nil {
		return err
	}
	o := corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: JournalName, Namespace: j.namespace, ResourceVersion: j.version},
		Data:       map[string]string{journalKey: string(text)},
	}
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	after, err := kube.Metadata(ctx, j.request(body))
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err) && j.version != "":
		return j.taken(ctx, string(text))
	case err != nil:
		return fmt.Errorf("save the journal, configmap %s/%s: %w", j.namespace, JournalName, err)
	}
	j.version = after.ResourceVersion
	return nil
}

// taken returns [ErrJournalTaken], unless the journal has the text of this run: then only the answer to its write was lost.
func (j *journal) taken(ctx context.Context, text string) error {
	stored, err := j.read(ctx)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return err
	case err != nil || stored.Data[journalKey] != text:
		return ErrJournalTaken
	}
	j.version = stored.ResourceVersion
	return nil
}

// request creates the ConfigMap, or replaces its data.
func (j *journal) request(body []byte) *rest.Request {
	if j.version == "" {
		path := j.path()
		return j.client.Post().AbsPath(path[:len(path)-1]...).SetHeader("Content-Type", runtime.ContentTypeJSON).
			Param("fieldManager", kube.FieldManager).Body(body)
	}
	return j.client.Patch(types.MergePatchType).AbsPath(j.path()...).Param("fieldManager", kube.FieldManager).Body(body)
}

// remove deletes the journal of a run that is done with everything.
func (j *journal) remove(ctx context.Context) error {
	if j.version == "" {
		return nil
	}
	options, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions: &metav1.Preconditions{ResourceVersion: &j.version},
	})
	if err != nil {
		return err
	}
	err = j.retry(ctx, func(ctx context.Context) error {
		return kube.Do(ctx, j.client.Delete().AbsPath(j.path()...).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(options)).Error()
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("remove the journal, configmap %s/%s: %w", j.namespace, JournalName, err)
	}
	return nil
}
