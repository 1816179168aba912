package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// object has a size, and characters that JSON may escape.
func object(name string, size int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"name": %q, "data": "<&>%s"}`, name, strings.Repeat("x", size)))
}

func names(list []Resources) []string {
	var out []string
	for _, r := range list {
		out = append(out, r.Cluster)
	}
	return out
}

// transport is what a bundle is after its way.
func transport(tb testing.TB, k keys, b ResourceBundle) ResourceBundle {
	tb.Helper()
	data, err := Encode(b)
	if err != nil {
		tb.Fatal(err)
	}
	public := k.target.Key()
	h := header(TypeResource)
	h.Migration, h.From, h.To = strings.Repeat("m", 36), strings.Repeat("f", 63), strings.Repeat("t", 63)
	e, err := Write(h, data, k.source, &public)
	if err != nil {
		tb.Fatalf("%d bytes: %v", len(data), err)
	}
	_, opened, err := Read(e, h.To, k.source.Key(), &k.target)
	if err != nil {
		tb.Fatal(err)
	}
	got, err := Decode[ResourceBundle](opened)
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// TestPack: bundles are at most 800 KiB when they are sealed, small clusters share one, and
// a large one is split between its objects.
//
// Matrix: H19.
func TestPack(t *testing.T) {
	k := newKeys(t)
	many := func(n, size int) (list []json.RawMessage) {
		for i := range n {
			list = append(list, object(fmt.Sprint(i), size))
		}
		return list
	}
	cases := map[string]struct {
		list    []Resources
		bundles int
	}{
		"Nothing":    {nil, 0},
		"Empty":      {[]Resources{{Cluster: "c1"}}, 1},
		"Small":      {[]Resources{{Cluster: "c1", Objects: many(5, 1000)}, {Cluster: "c2", Objects: many(5, 1000)}}, 1},
		"Large":      {[]Resources{{Cluster: "c1", Objects: many(300, 8000)}}, 3},
		"LastFits":   {[]Resources{{Cluster: "c1", Objects: []json.RawMessage{object("a", roomBytes-400)}}}, 1},
		"Kubeconfig": {[]Resources{{Cluster: "c1", Objects: many(300, 8000), SourceKubeconfig: bytes.Repeat([]byte("k"), 50<<10)}}, 4},
		"TinyObject": {[]Resources{{Cluster: "c1", Objects: many(5000, 10)}}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bundles, err := Pack(len(tc.list), tc.list)
			if err != nil {
				t.Fatal(err)
			}
			if len(bundles) != tc.bundles {
				t.Errorf("%d bundles, want %d", len(bundles), tc.bundles)
			}
			r := NewReassembler(names(tc.list), 16<<20)
			var got []Resources
			for _, b := range bundles {
				complete, err := r.Add(transport(t, k, b))
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, complete...)
			}
			for i := range got {
				if !bytes.Equal(got[i].SourceKubeconfig, tc.list[i].SourceKubeconfig) {
					t.Errorf("%s has a kubeconfig of %d bytes, want %d", got[i].Cluster, len(got[i].SourceKubeconfig), len(tc.list[i].SourceKubeconfig))
				}
			}
			if len(got) != len(tc.list) || len(r.Missing()) > 0 || r.Held() != 0 {
				t.Errorf("%d clusters are complete, want %d; missing %v; held %d bytes", len(got), len(tc.list), r.Missing(), r.Held())
			}
		})
	}
	_, err := Pack(1, []Resources{{Cluster: "c1", Objects: []json.RawMessage{object("a", 10), object("b", MaxBytes)}}})
	if large := (*TooLargeError)(nil); !errors.As(err, &large) || large.Index != 1 || large.Cluster != "c1" {
		t.Errorf("an object of 800 KiB: %v, want an error that names it", err)
	}
	if _, err := Pack(1, []Resources{{Cluster: "c1", Objects: []json.RawMessage{json.RawMessage("{")}}}); err == nil {
		t.Error("an object that is no JSON was packed")
	}
}

// TestMissing: lost batches are named, and only those are sent again.
//
// Matrix: H26.
func TestMissing(t *testing.T) {
	list := []Resources{{Cluster: "c1", SourceKubeconfig: []byte("k")}, {Cluster: "c2", Objects: []json.RawMessage{object("a", 10)}}}
	for i := range 600 {
		list[0].Objects = append(list[0].Objects, object(fmt.Sprint(i), 8000))
	}
	bundles, err := Pack(2, list)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReassembler([]string{"c1", "c2", "c3"}, 16<<20)
	for i, b := range bundles {
		if i != 1 && i != len(bundles)-1 { // two are lost
			if _, err := r.Add(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	gaps := r.Missing()
	if len(gaps) != 4 || gaps[0].ClusterName != "c1" || gaps[2] != (Gap{ClusterName: "c2"}) || gaps[3] != (Gap{ClusterName: "c3"}) {
		t.Fatalf("missing are %v, want two parts of c1, and all of c2 and c3", gaps)
	}
	again, err := PackMissing(2, list, gaps[:3])
	if err != nil {
		t.Fatal(err)
	}
	var complete []string
	for _, b := range again {
		got, err := r.Add(b)
		if err != nil {
			t.Fatal(err)
		}
		complete = append(complete, names(got)...)
	}
	slices.Sort(complete)
	if diff := cmp.Diff([]string{"c1", "c2"}, complete); diff != "" {
		t.Errorf("complete (-want +got):\n%s", diff)
	}
	if _, err := PackMissing(2, list, []Gap{{ClusterName: "c9"}}); err == nil {
		t.Error("packed a cluster that is not there")
	}
	if _, err := PackMissing(2, list, []Gap{{ClusterName: "c2", First: 1, Objects: 5}}); err == nil {
		t.Error("packed objects that are not there")
	}
}

// TestReassemblerRefuses: a bundle that does not fit together takes neither memory nor the
// place of one that does.
//
// Matrix: H57.
func TestReassemblerRefuses(t *testing.T) {
	small := []json.RawMessage{object("a", 10), object("b", 10)}
	bundles, err := Pack(1, []Resources{{Cluster: "c1", Objects: small}})
	if err != nil {
		t.Fatal(err)
	}
	good := bundles[0].MigrationClusterResources[0]
	change := func(f func(*ClusterResources)) ResourceBundle {
		c := good
		f(&c)
		return ResourceBundle{MigrationClusterResources: []ClusterResources{c}}
	}
	cases := map[string]ResourceBundle{
		"another cluster": change(func(c *ClusterResources) { c.ClusterName = "c2" }),
		"negative":        change(func(c *ClusterResources) { c.First = -1 }),
		"beyond the end":  change(func(c *ClusterResources) { c.First = 1 }),
		"huge number":     change(func(c *ClusterResources) { c.Objects = 1 << 40 }),
		"overflow":        change(func(c *ClusterResources) { c.First = 1<<63 - 1 }),
		"other content": change(func(c *ClusterResources) {
			c.ResourceList = []json.RawMessage{good.ResourceList[1], good.ResourceList[0]}
		}),
		"more than limit": change(func(c *ClusterResources) {
			c.Hash = "x"
			c.ResourceList = []json.RawMessage{object("a", 5000), object("b", 1)}
		}),
		"slots over limit": change(func(c *ClusterResources) { c.Hash = "y"; c.Objects = 5000 }),
		"other kubeconfig": change(func(c *ClusterResources) { c.SourceKubeconfig = []byte("other") }),
		"large kubeconfig": change(func(c *ClusterResources) { c.Hash = "k"; c.SourceKubeconfig = make([]byte, 5000) }),
		"empty object":     change(func(c *ClusterResources) { c.Hash = "z"; c.ResourceList = []json.RawMessage{nil} }),
	}
	for name, b := range cases {
		r := NewReassembler([]string{"c1"}, 1000)
		if got, err := r.Add(b); err == nil || got != nil {
			t.Errorf("%s: %v, %v, want an error", name, got, err)
		}
		if r.Held() > 1000 {
			t.Errorf("%s: %d bytes are held, want at most 1000", name, r.Held())
		}
		if got, err := r.Add(bundles[0]); err != nil || len(got) != 1 {
			t.Errorf("%s: the bundle that follows is complete: %v, %v", name, got, err)
		}
	}
}

// FuzzReassemble: bundles that arrive in any order, some twice and some lost, never make
// something else of the objects, and those that are missing complete them.
//
// Matrix: H27.
func FuzzReassemble(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint16(40))
	f.Add(uint64(7), uint8(1), uint16(900))
	f.Fuzz(func(t *testing.T, seed uint64, clusters uint8, objects uint16) {
		random := rand.New(rand.NewPCG(seed, 1))
		var list []Resources
		for c := range int(clusters%5) + 1 {
			r := Resources{Cluster: fmt.Sprintf("c%d", c), SourceKubeconfig: []byte(strings.Repeat("k", random.IntN(20_000)))}
			for o := range random.IntN(int(objects%200) + 1) {
				r.Objects = append(r.Objects, object(fmt.Sprint(o), random.IntN(20_000)))
			}
			list = append(list, r)
		}
		bundles, err := Pack(len(list), list)
		if err != nil {
			t.Fatal(err)
		}
		const limit = 64 << 20
		r := NewReassembler(names(list), limit)
		got := map[string]Resources{}
		deliver := func(bundles []ResourceBundle) {
			for range 2 * len(bundles) {
				complete, err := r.Add(bundles[random.IntN(len(bundles))])
				if err != nil || r.Held() > limit || r.Held() < 0 {
					t.Fatalf("add: %v, %d bytes held", err, r.Held())
				}
				for _, c := range complete {
					if _, twice := got[c.Cluster]; twice {
						t.Fatalf("cluster %s is complete twice", c.Cluster)
					}
					got[c.Cluster] = c
				}
			}
		}
		deliver(bundles)
		for range 200 {
			gaps := r.Missing()
			if len(gaps) == 0 {
				break
			}
			again, err := PackMissing(len(list), list, gaps)
			if err != nil {
				t.Fatal(err)
			}
			deliver(again)
		}
		for _, want := range list {
			arrived, ok := got[want.Cluster]
			objects := arrived.Objects
			if len(objects) > 0 && !bytes.Equal(arrived.SourceKubeconfig, want.SourceKubeconfig) {
				t.Fatalf("the kubeconfig of cluster %s changed on the way", want.Cluster)
			}
			if !ok || len(objects) != len(want.Objects) {
				t.Fatalf("cluster %s has %d objects, want %d", want.Cluster, len(objects), len(want.Objects))
			}
			sent, err := canonical(want)
			if err != nil {
				t.Fatal(err)
			}
			for i := range objects {
				if string(objects[i]) != string(sent.Objects[i]) {
					t.Fatalf("object %d of cluster %s changed on the way", i, want.Cluster)
				}
			}
		}
	})
}
