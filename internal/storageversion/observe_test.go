package storageversion

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/walk"
)

// cacheServer lists pages of one object each, and fills its watch cache meanwhile.
type cacheServer struct {
	unfilled int // answers about the cache before it is filled
	pages    int // that there are
	clock    *clocktesting.FakePassiveClock
	perPage  time.Duration // that reading a page takes

	asked, read int
	limits      []string
}

func (s *cacheServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	list.ResourceVersion = "9"
	if req.URL.Query().Get("resourceVersion") == "0" {
		if s.asked++; s.asked <= s.unfilled {
			status := apierrors.NewTooManyRequests("storage is (re)initializing", 1).ErrStatus
			w.WriteHeader(int(status.Code))
			_ = json.NewEncoder(w).Encode(status)
			return
		}
		_ = json.NewEncoder(w).Encode(list)
		return
	}
	s.limits = append(s.limits, req.URL.Query().Get("limit"))
	s.clock.SetTime(s.clock.Now().Add(s.perPage))
	if s.read++; s.read < s.pages {
		list.Continue = strconv.Itoa(s.read)
	}
	list.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(s.read), UID: "1", ResourceVersion: "5"}}}
	_ = json.NewEncoder(w).Encode(list)
}

// TestReadsAll: while the watch cache of the API server is not filled, every object is read, until it is.
func TestReadsAll(t *testing.T) {
	t.Parallel()
	webhook := &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: new("https://converter.example.com")},
	}}
	for name, tc := range map[string]struct {
		unfilled          int
		perPage           time.Duration
		conversion        *apiextensionsv1.CustomResourceConversion
		asked, read int
		limit             string
	}{
		"filled":                   {asked: 1},
		"filled in a moment":       {unfilled: 2, asked: 3},
		"filled while it is read":  {unfilled: 5, perPage: time.Second, asked: 6, read: 4, limit: "500"},
		"read before it is filled": {unfilled: 100, asked: 4, read: 20, limit: "500"},
		"converted by a webhook":   {unfilled: 100, conversion: webhook, asked: 4, read: 20, limit: "100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &cacheServer{unfilled: tc.unfilled, pages: 20, perPage: tc.perPage, clock: clocktesting.NewFakePassiveClock(time.Now())}
			server := httptest.NewServer(s)
			t.Cleanup(server.Close)
			client, err := request.New(&rest.Config{Host: server.URL}, walk.NewLimiter(walk.Limits{}), s.clock)
			if err != nil {
				t.Fatal(err)
			}
			crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "example.com", Scope: apiextensionsv1.ClusterScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
				Versions:   []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}},
				Conversion: tc.conversion,
			}}
			if err := (&Migrator{client: client, options: Options{Clock: s.clock}}).readsAll(t.Context(), crd); err != nil {
				t.Fatal(err)
			}
			if s.asked != tc.asked || s.read < tc.read || s.read > tc.read+3 { // two pages may be read ahead
				t.Errorf("asked %d times about the cache and read %d pages, want %d and %d", s.asked, s.read, tc.asked, tc.read)
			}
			if slices.ContainsFunc(s.limits, func(limit string) bool { return limit != tc.limit }) {
				t.Errorf("pages of %v objects, want %s", s.limits, tc.limit)
			}
		})
	}
}
