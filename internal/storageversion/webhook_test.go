package storageversion

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/evidence"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/internal/storageversion/managedfields"
	"github.com/godwit-dev/godwit/walk"
)

// webhookServer answers writes of an object, whose managedFields a conversion webhook must convert, in their order, and lists of
// it with its live metadata.
type webhookServer struct {
	answers []metav1.Status
	live    *metav1.PartialObjectMetadata
	writes  []string // content type of each write
}

func (s *webhookServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		list.Items = []metav1.PartialObjectMetadata{*s.live}
		_ = json.NewEncoder(w).Encode(list)
		return
	}
	s.writes = append(s.writes, r.Header.Get("Content-Type"))
	answer := s.answers[len(s.writes)-1]
	if answer.Code == http.StatusOK {
		live := *s.live
		if r.Header.Get("Accept") == kube.AcceptMetadata {
			live.TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
		}
		_ = json.NewEncoder(w).Encode(live)
		return
	}
	answer.TypeMeta, answer.Status = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, metav1.StatusFailure
	w.WriteHeader(int(answer.Code))
	_ = json.NewEncoder(w).Encode(answer)
}

// TestApplyInPlaceOfAPatch: what the answers to an apply mean that is sent where the policy has a patch.
func TestApplyInPlaceOfAPatch(t *testing.T) {
	const apply, patch = "application/apply-patch+yaml", "application/merge-patch+json"
	conflict := metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "the object has been modified"}
	cases := map[string]struct {
		reason  string
		since   string
		answers []metav1.Status
		want    godwit.Outcome
		again   bool // the error is a conflict, and the object has the live resourceVersion
		writes  []string
	}{
		"written":                                {"the apply is the only write", "100", []metav1.Status{{Code: 200}}, godwit.Migrated, false, []string{apply}},
		"conflict with a write since the change": {"the other client has done the work", "60", []metav1.Status{conflict}, godwit.Skipped, false, []string{apply}},
		"conflict with an older write":           {"as after a patch, the object is tried again", "100", []metav1.Status{conflict}, godwit.Failed, true, []string{apply}},
		"conflict in a run without a checkpoint": {"nothing says what the other client has done", "", []metav1.Status{conflict}, godwit.Failed, true, []string{apply}},
		"an object that follows no schema": {
			"only a patch can write it", "100",
			[]metav1.Status{{Code: 500, Message: `failed to create typed live object: .spec.tags: duplicate entries for key ["a"]`}, {Code: 200}},
			godwit.Migrated, false, []string{apply, patch},
		},
		"the webhook is down": {
			"a patch would cost the object its managedFields", "100",
			[]metav1.Status{{Code: 500, Message: `conversion webhook for example.com/v1, Kind=Widget failed: Post "https://127.0.0.1:1/": connection refused`}},
			godwit.Failed, false, []string{apply},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fields := []metav1.ManagedFieldsEntry{{Manager: "a", Operation: "Update", APIVersion: "example.com/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{}`)}}
			object := func(rv string) *metav1.PartialObjectMetadata {
				return &metav1.PartialObjectMetadata{
					TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v2", Kind: "Widget"},
					ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: rv, ManagedFields: fields},
				}
			}
			server := &webhookServer{answers: tc.answers, live: object("70")}
			r, o := webhookRewriter(t, server, tc.since), object("50")
			outcome, lost, err := r.rewrite(t.Context(), o)
			if outcome != tc.want || lost != nil || (err != nil) != (tc.want == godwit.Failed) {
				t.Errorf("%s, lost %v, %v, want %s: %s", outcome, lost, err, tc.want, tc.reason)
			}
			if again := apierrors.IsConflict(err) && o.ResourceVersion == "70"; again != tc.again {
				t.Errorf("tried again at resourceVersion %s after %v, want %t: %s", o.ResourceVersion, err, tc.again, tc.reason)
			}
			if diff := cmp.Diff(tc.writes, server.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// webhookRewriter has the default policy, for a CRD with a conversion webhook that serves v1 and stores v2.
func webhookRewriter(t *testing.T, handler http.Handler, since string) *rewriter {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := request.New(&rest.Config{Host: server.URL}, walk.NewLimiter(walk.Limits{}), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com", UID: "crd"}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.ClusterScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
		Versions:   []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true}, {Name: "v2", Served: true, Storage: true}},
		Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter},
	}}
	r := &rewriter{client: client}
	r.epoch.Store(&epoch{crd: crd, gvr: kube.ResourceOf(crd), kind: "Widget", cleaner: managedfields.For(crd, client.Clock.Now), key: kube.GenerationOf(crd)})
	r.baseline.Store(&evidence.Baseline{Since: since})
	return r
}
