package agent

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/godwit-dev/godwit/cmd/hub/cluster"
	"github.com/godwit-dev/godwit/internal/format"
)

func stateOf(t *testing.T, release string) string {
	t.Helper()
	text, err := os.ReadFile("../../../test/state/" + release + "/command.json")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "\n")
}

// TestCommandOfOtherReleases: the command that v0.1.0 stores, and that the manager of v0.1.0 sends, is read and written with each of
// its fields. A migration whose command a newer release has stored is left alone, and the others are not.
func TestCommandOfOtherReleases(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.WriteString(w, stateOf(t, "v0.1.0")); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	known, err := decodeTask(packed.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	later := []string{".Source.EvictedWorks", ".Source.UserObjects", ".Target.UserObjects", ".Target.SourceKeyNumber", ".Target.OwnAccount", ".Inbox.Report.Certificates", ".Inbox.Report.DeniedRequests", ".Inbox.Report.Warnings"} // state.md says what an older agent does
	for _, path := range slices.DeleteFunc(empty(reflect.ValueOf(known), ""), func(path string) bool { return slices.Contains(later, path) }) {
		t.Errorf("v0.1.0 stores no field%s: say in docs/reference/state.md what a program does that does not know it", path)
	}
	text, err := json.Marshal(known)
	if err != nil || string(text) != stateOf(t, "v0.1.0") {
		t.Errorf("%v: written otherwise than v0.1.0 did:\n%s", err, text)
	}

	secret := func(uid, stored string, data []byte) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "godwit", Name: secretPrefix + uid, Labels: map[string]string{labelStored: uid}},
			Data:       map[string][]byte{dataTask: data, format.Key: []byte(stored)},
		}
	}
	c := fake.NewClientBuilder().WithObjects(secret("old", "1", packed.Bytes()), secret("new", "2", []byte(stateOf(t, "newer")))).Build()
	a := New(Options{Client: c, Hub: "hub1", Namespace: "godwit", Clock: clocktesting.NewFakeClock(time.Now())})
	all, newer, err := a.store.list(t.Context())
	if err != nil || len(all) != 1 || all["old"].task.Inbox.Last.Attempt != known.Inbox.Last.Attempt {
		t.Errorf("%v: the agent knows %+v", err, all)
	}
	if len(newer) != 1 || !strings.HasPrefix(newer["new"].Error(), cluster.ReasonNewerFormat.Name+": Secret godwit/godwit-migration-new has format 2") {
		t.Errorf("refused are %v", newer)
	}
}

// empty lists the fields without a value, of structs of this repository.
func empty(v reflect.Value, path string) []string {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && v.Elem().Kind() == reflect.Struct {
			return empty(v.Elem(), path)
		}
	case reflect.Slice:
		if v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct {
			return empty(v.Index(0), path+"[0]")
		}
	case reflect.Struct:
		if !strings.Contains(v.Type().PkgPath(), "godwit") {
			break
		}
		var all []string
		for i := range v.NumField() {
			if tag := v.Type().Field(i).Tag.Get("json"); tag != "-" {
				all = append(all, empty(v.Field(i), path+"."+v.Type().Field(i).Name)...)
			}
		}
		return all
	}
	if v.IsZero() {
		return []string{path}
	}
	return nil
}
