package oracle_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/godwit-dev/godwit/revision/kubevirt"
	"github.com/godwit-dev/godwit/test/kubevirt/fixture"
)

// FuzzTyped fills KubeVirt's types by what the fuzzer gives, and stores them as
// KubeVirt did. Their JSON is then canonical, so that ours must be the same text.
func FuzzTyped(f *testing.F) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, 2048)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data, uint8(seed))
	}
	for _, one := range fixture.All() {
		f.Add([]byte(one.Data), uint8(len(one.Kind)))
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		o := oracle[int(which)%len(oracle)]
		old := o.old()
		filler(data).Fill(old)
		text, err := json.Marshal(old)
		if err != nil {
			t.Fatal(err)
		}
		var parts struct {
			Metadata, Spec json.RawMessage
		}
		if err := json.Unmarshal(text, &parts); err != nil {
			t.Fatal(err)
		}
		whole, err := json.Marshal(map[string]any{
			"apiVersion": "instancetype.kubevirt.io/" + o.version, "kind": o.kind, "metadata": parts.Metadata, "spec": parts.Spec,
		})
		if err != nil {
			t.Fatal(err)
		}
		o.compare(t, whole, whole, kubevirt.FormObject)
		if o.version == "v1alpha1" {
			o.compare(t, o.beneath(parts.Spec), wrap([]string{"", "instancetype.kubevirt.io/v1alpha1"}[which%2], parts.Spec), kubevirt.FormSpecRevision)
		}
	})
}

// compare wants the same object of both, and the same text.
func (o theirs) compare(t *testing.T, theirData, ourData []byte, form string) {
	t.Helper()
	want, got := o.theirResult(theirData), o.ourResult(ourData, form)
	if want.refused != nil {
		t.Fatalf("KubeVirt refuses what its own types wrote: %v", want.refused)
	}
	if err := differ(want, got); err != nil {
		t.Fatalf("%v\nof %s", err, ourData)
	}
	if want.text != got.text {
		t.Fatalf("KubeVirt %s\nGodwit   %s\nof       %s", want.text, got.text, ourData)
	}
}

// filler draws from data, in which a fuzzer looks for new paths. Metadata is as
// KubeVirt leaves it: labels and the like it removes.
func filler(data []byte) *randfill.Filler {
	return randfill.NewFromGoFuzz(data).NilChance(.5).NumElements(0, 3).MaxDepth(16).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			formats := []resource.Format{resource.DecimalSI, resource.BinarySI, resource.DecimalExponent}
			// What a cluster stores went through a reader already, which prefers other units.
			*q = resource.MustParse(resource.NewQuantity(c.Int63(), formats[c.Uint32()%3]).String())
		},
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			c.Fill(&m.Name)
			c.Fill(&m.UID)
			m.Generation = c.Int63()
		},
		func(m *metav1.TypeMeta, _ randfill.Continue) { *m = metav1.TypeMeta{} },
		func(s *string, c randfill.Continue) { *s = strings.ToValidUTF8(c.String(0), "") },
	)
}

// FuzzRaw changes the JSON itself. Whatever KubeVirt can't read, we refuse; what it
// can, we read as it does. The differences are those that stricter knows.
func FuzzRaw(f *testing.F) {
	for _, one := range fixture.All() {
		for which, o := range oracle {
			if o.version != one.Version || o.kind != one.Kind {
				continue
			}
			spec := payloadOrSpec(f, one)
			f.Add(spec, uint8(which), false)
			f.Add(spec, uint8(which), true)
		}
	}
	for _, spec := range []string{
		"{\"devices\":{\"\x7f\":\"\"}}", `{"` + strings.Repeat("é", 60) + `.` + strings.Repeat("é", 60) + `":[1]}`,
		`{}`, `null`, `{"cpu":null,"memory":null}`, `{"cpu":{"guest":null,"model":null},"memory":{"guest":null}}`, `{"cpu":{"preferredCPUTopology":""}}`,
		`{"memory":{"guest":1e3}}`, `{"memory":{"guest":"\u0031Gi"}}`, `{"cpu":{"guest":-0}}`, `{"gpus":[null,{"name":null}]}`, `{"annotations":{"a":"b"},"volumes":{}}`,
		`{"devices":{"preferredDiskBlockSize":{"custom":{"logical":18446744073709551615}}}}`,
	} {
		for which := range oracle {
			f.Add([]byte(spec), uint8(which), which%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, spec []byte, which uint8, bare bool) {
		o := oracle[int(which)%len(oracle)]
		if bare && o.version != "v1alpha1" {
			return
		}
		if !json.Valid(spec) {
			return // what is around it would be another thing then
		}
		theirData := o.beneath(spec)
		ourData, form := theirData, kubevirt.FormObject
		if bare {
			ourData, form = wrap("", spec), kubevirt.FormSpecRevision
		}
		want, got := o.theirResult(theirData), o.ourResult(ourData, form)
		if stricter(spec, got) || escapedQuantity(spec, want) || bare && otherRole(o, spec) {
			return
		}
		if err := differ(want, got); err != nil {
			t.Fatalf("%v\nof %s", err, ourData)
		}
	})
}

// stricter is whether we refuse on purpose what KubeVirt reads: text that is not
// UTF-8, of which it would make something else; what is deeper than any instance type;
// a key that occurs twice in what it does not know.
func stricter(spec []byte, got result) bool {
	if got.refused == nil {
		return false
	}
	return !utf8.Valid(spec) || strings.Contains(got.refused.Error(), "levels deep") || strings.Contains(got.refused.Error(), "occurs twice")
}

// escapedQuantity is whether KubeVirt can't read a quantity for no other reason than an
// escape in it. We can, and write it without.
func escapedQuantity(spec []byte, want result) bool {
	return want.refused != nil && bytes.Contains(spec, []byte(`\`)) && errors.Is(want.refused, resource.ErrFormatWrong)
}

// otherRole is whether a spec by itself reads as the other role and not as its own:
// the reference is wrong then, and KubeVirt takes it for the other.
func otherRole(o theirs, spec []byte) bool {
	other := find("v1alpha1", map[bool]string{true: "VirtualMachineInstancetype", false: "VirtualMachinePreference"}[strings.HasSuffix(o.kind, "Preference")])
	own, as := o.theirResult(o.beneath(spec)), other.theirResult(other.beneath(spec))
	return (own.refused != nil || len(own.unknown) > 0) && (as.refused == nil || escapedQuantity(spec, as)) && len(as.unknown) == 0
}

func payloadOrSpec(f *testing.F, one fixture.Fixture) []byte {
	f.Helper()
	if one.Form == "F0" {
		return payload(one.Data)
	}
	var whole struct{ Spec json.RawMessage }
	if err := json.Unmarshal([]byte(one.Data), &whole); err != nil {
		f.Fatal(err)
	}
	return whole.Spec
}
