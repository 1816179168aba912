package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit/internal/format"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/walk"
)

const (
	// labelSavedNames is on each ConfigMap with saved names. Its value is the name of the store.
	labelSavedNames = "godwit.dev/external-name-book"
	// annotationParts is the number of parts of the saved names.
	annotationParts = "godwit.dev/external-name-book-parts"
	// labelSaved is the time of the saved names. All their parts have it.
	labelSaved = "godwit.dev/external-name-book-saved"
	// partKey is the key of the names in a part.
	partKey = "names.jsonl"
	// savedForm is a time format that sorts by time and is a valid label value.
	savedForm = "20060102t150405.000000000"
	// partBytes leaves room for the metadata: etcd takes 1.5 MiB, a ConfigMap 1 MiB.
	partBytes = 900 << 10
)

// ErrNoSavedNames means that the store has no complete set of saved names.
var ErrNoSavedNames = errors.New("no complete set of saved names is stored")

// Store keeps saved names in ConfigMaps, each below 1 MiB.
type Store struct {
	Namespace, Name string
	client          *kube.Client
}

// NewStore returns the store with a name in a namespace. It sends no request.
func NewStore(cfg *rest.Config, limiter *walk.Limiter, namespace, name string) (*Store, error) {
	client, err := kube.NewClient(cfg, limiter, clock.RealClock{})
	return &Store{Namespace: namespace, Name: name, client: client}, err
}

// Save stores saved names, and deletes earlier ones. If the process is killed in between, the store has the earlier
// ones, or both.
func (s *Store) Save(ctx context.Context, b SavedNames) error {
	if _, err := s.list(ctx); err != nil {
		return fmt.Errorf("list the names that were saved before: %w", err)
	}
	saved := time.Now().UTC().Format(savedForm)
	parts, err := partsOf(b.Names)
	if err != nil {
		return err
	}
	for i, part := range parts {
		cm := &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{
				Name: partName(s.Name, saved, i), Namespace: s.Namespace,
				Labels:      map[string]string{labelSavedNames: s.Name, labelSaved: saved},
				Annotations: map[string]string{annotationParts: strconv.Itoa(len(parts))},
			},
			Data: map[string]string{partKey: part},
		}
		if err := s.send(ctx, cm); err != nil {
			return fmt.Errorf("store the saved names: %w", err)
		}
	}
	return s.deleteBefore(ctx, saved)
}

// partName returns the name of a part. Names sort in the order of the parts.
func partName(book, saved string, part int) string {
	return fmt.Sprintf("%s-%s-%05d", book, saved, part)
}

// partsOf returns the parts, with one name per line. Without names it returns one empty part.
func partsOf(names []Name) ([]string, error) {
	parts := []string{}
	var part bytes.Buffer
	for _, n := range names {
		line, err := json.Marshal(n)
		if err != nil {
			return nil, fmt.Errorf("write the name of %s: %w", n.Name, err)
		}
		if part.Len()+len(line) >= partBytes && part.Len() > 0 {
			parts = append(parts, part.String())
			part.Reset()
		}
		part.Write(line)
		part.WriteByte('\n')
	}
	return append(parts, part.String()), nil
}

// send creates a part. A part that exists already was created by an attempt whose answer was lost.
func (s *Store) send(ctx context.Context, cm *corev1.ConfigMap) error {
	body, err := json.Marshal(cm)
	if err != nil {
		return err
	}
	return walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
		err := kube.Do(ctx, s.client.Post().AbsPath(s.path()...).SetHeader("Content-Type", runtime.ContentTypeJSON).
			Param("fieldManager", kube.FieldManager).Body(body)).Error()
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

func (s *Store) path(name ...string) []string {
	return append([]string{"api", "v1", "namespaces", s.Namespace, "configmaps"}, name...)
}

func (s *Store) list(ctx context.Context) ([]corev1.ConfigMap, error) {
	var list corev1.ConfigMapList
	err := walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
		text, err := kube.Body(kube.Do(ctx, s.client.Get().AbsPath(s.path()...).Param("labelSelector", labelSavedNames+"="+s.Name).
			SetHeader("Accept", runtime.ContentTypeJSON)))
		if err != nil {
			return err
		}
		list = corev1.ConfigMapList{}
		return json.Unmarshal(text, &list)
	})
	for i := range list.Items {
		if newer := format.CheckObject(fmt.Sprintf("configmap %s/%s", s.Namespace, list.Items[i].Name), &list.Items[i]); newer != nil {
			return nil, fmt.Errorf("%s: %w; %s, or save under another name", ReasonNewerFormat, newer, format.Do)
		}
	}
	return list.Items, err
}

func (s *Store) deleteBefore(ctx context.Context, saved string) error {
	parts, err := s.list(ctx)
	if err != nil {
		return fmt.Errorf("list the names that were saved before: %w", err)
	}
	for _, part := range parts {
		if part.Labels[labelSaved] >= saved {
			continue
		}
		err := walk.Retry(ctx, walk.DefaultAttempts, func(ctx context.Context) error {
			err := kube.Do(ctx, s.client.Delete().AbsPath(s.path(part.Name)...)).Error()
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("delete the names that were saved before: %w", err)
		}
	}
	return nil
}

// Load returns the newest complete saved names, or [ErrNoSavedNames].
func (s *Store) Load(ctx context.Context) (SavedNames, error) {
	parts, err := s.list(ctx)
	if err != nil {
		return SavedNames{}, fmt.Errorf("read the saved names: %w", err)
	}
	saved, complete := newestComplete(parts)
	if saved == "" {
		return SavedNames{}, fmt.Errorf("%w under the name %s in namespace %s", ErrNoSavedNames, s.Name, s.Namespace)
	}
	return readParts(saved, complete)
}

// newestComplete returns the parts of the newest complete saved names. saved is empty if none are complete.
func newestComplete(parts []corev1.ConfigMap) (saved string, complete []corev1.ConfigMap) {
	books := map[string][]corev1.ConfigMap{}
	for _, part := range parts {
		at := part.Labels[labelSaved]
		books[at] = append(books[at], part)
		if part.Annotations[annotationParts] == strconv.Itoa(len(books[at])) {
			saved = max(saved, at)
		}
	}
	return saved, books[saved]
}

func readParts(saved string, parts []corev1.ConfigMap) (SavedNames, error) {
	at, err := time.Parse(savedForm, saved)
	if err != nil {
		return SavedNames{}, fmt.Errorf("read the time of the saved names: %w", err)
	}
	var names []Name
	slices.SortFunc(parts, func(a, b corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
	for _, part := range parts {
		for line := range strings.Lines(part.Data[partKey]) {
			var n Name
			if err := json.Unmarshal([]byte(line), &n); err != nil {
				return SavedNames{}, fmt.Errorf("read configmap %s: %w", part.Name, err)
			}
			names = append(names, n)
		}
	}
	return NewSavedNames(at, names), nil
}
