package settle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/godwit-dev/godwit/internal/kube/kubetest"
)

// Each script is what one process sees, one reading a line:
//
//	time of the reading server and its last renewal ...   => decision
//
// All times count from the flip as managedFields have it. They are cut to the
// second, so the flip was at most 1 s later, a server has adopted it when it
// renews at 16 s or later, and the default settle time ends at 76 s. Text after
// # is for the reader.
func TestSettle(t *testing.T) {
	cases := map[string]struct {
		reason string
		terms  Terms
		edit   kubetest.Edit // of the CRD
		script string
	}{
		"two servers that live": {
			reason: "each is waited for until it has renewed after the watch's share, then the time until 75 s is left",
			script: `
				1s        a-3s b-8s       => waits for a, b
				11s       a+7s b+2s       => waits for a, b     # renewed since the flip, but its watch may lag
				17s       a+17s b+12s     => waits for b
				22s       a+17s b+22s     => settles at 1m16s
				75.999s   a+67s b+72s     => settles at 1m16s
				76s       a+67s b+72s     => settled
				2h        a+7199s b+7190s => settled`,
		},
		"the edge of adoption": {
			reason: "16 s is the flip's latest moment and a fifth of 75 s",
			script: `
				17s   a+15.999s   => waits for a
				17s   a+16s       => settles at 1m16s`,
		},
		"a flip of long ago": {
			reason: "zero wait when every server has adopted and requests of then are over",
			script: `
				1h   a+3590s b+3595s   => settled`,
		},
		"a server stopped across the flip": {
			reason: "measured: it renews 13 ms after it is back and then finishes queued writes at the old version, so its renewal starts the settle time anew",
			script: `
				2s         a-1s b-20s        => waits for a, stale b
				20s        a+18s b-20s       => waits for stale b
				80s        a+78s b-20s       => waits for stale b    # the settle time alone is not enough
				100.013s   a+98s b+100.013s  => settles at 2m55.013s  # back, its queue not yet done
				101s       a+98s b+100.013s  => settles at 2m55.013s
				175s       a+168s b+170s     => settles at 2m55.013s
				175.013s   a+168s b+170s     => settled`,
		},
		"back, but with an old renewal": {
			reason: "a renewal within the watch's share proves no adoption, also of a server that was away",
			script: `
				10s   b-20s     => waits for stale b
				15s   b+14s     => waits for b
				25s   b+24s     => settles at 1m40s`,
		},
		"two servers stopped, back one by one": {
			reason: "the time starts when the last of them is back",
			script: `
				30s    a-20s b-20s     => waits for stale a, stale b
				60s    a+60s b-20s     => waits for stale b
				100s   a+100s b+99s    => settles at 2m55s
				175s   a+170s b+170s   => settled`,
		},
		"a server that is back goes away again": {
			reason: "it may have stopped with the same old requests under way",
			script: `
				80s   a+78s b-20s     => waits for stale b
				100s  a+98s b+99.9s   => settles at 2m55s
				175s  a+170s b+100s   => waits for stale b
				180s  a+178s b+180s   => settles at 4m15s
				255s  a+250s b+250s   => settled`,
		},
		"stale within the settle time": {
			reason: "it adopted, but did not live to end what it had begun before",
			script: `
				20s   a+18s b+18s   => settles at 1m16s
				76s   a+68s b+18s   => waits for stale b
				100s  a+98s b+99s   => settles at 2m55s
				175s  a+170s b+170s => settled`,
		},
		"stale after the settle time, while another is late": {
			reason: "what a had begun before the change was over when its lease became stale",
			script: `
				20s    a+18s b-20s     => waits for stale b
				200s   a+100s b-20s    => waits for stale b
				300s   a+100s b+299s   => settles at 6m15s
				375s   a+100s b+370s   => settled`,
		},
		"a server goes away again before it adopted": {
			reason: "what was seen of it is taken back",
			script: `
				40s    a+38s b-20s     => waits for stale b
				60s    a+58s b+59s     => settles at 2m15s
				70s    a+68s b+69s c-5s => waits for stale c          # a lease that we could not see before
				90s    a+88s b+89s c+90s => settles at 2m45s
				165s   a+160s b+160s c+160s => settled`,
		},
		"the stale lease is gone": {
			reason: "the user vouches for it or it ended; when is not known, so the time runs from here",
			script: `
				30s    a+28s b-20s   => waits for stale b
				200s   a+198s        => settles at 4m35s
				275s   a+270s        => settled`,
		},
		"a server that starts later": {
			reason: "it reads the CRD as it is, and its first renewal says so",
			script: `
				20s   a+18s         => settles at 1m16s
				40s   a+38s c+39s   => settles at 1m16s
				76s   a+68s c+69s   => settled`,
		},
		"stale after the settle time": {
			reason: "it adopted, and nothing of before the flip was left when its lease became stale",
			script: `
				20s    a+18s b+19s   => settles at 1m16s
				120s   a+118s b+80s  => settled
				30m    a+1795s b+80s => settled`,
		},
		"fifteen seconds are not stale": {
			reason: "renewals come every 10 s and a little",
			script: `
				10s        b-5s   => waits for b
				10.001s    b-5s   => waits for stale b`,
		},
		"back before the first reading": {
			reason: "a process that reads for the first time can't tell a server that is back from one that never left: the default counts from the flip",
			script: `
				100.1s   a+98s b+100.013s   => settled`,
		},
		"back before the first reading, from sight": {
			reason: "who counts from sight need not tell",
			terms:  Terms{SettleFromSight: true},
			script: `
				100.1s   a+98s b+100.013s   => settles at 2m55.1s
				115s     a+108s b+110s      => settles at 2m55.1s
				130s     a+128s b+130s      => settles at 2m55.1s
				145s     a+138s b+140s      => settles at 2m55.1s
				160s     a+158s b+160s      => settles at 2m55.1s
				175s     a+168s b+170s      => settles at 2m55.1s
				175.1s   a+168s b+170s      => settled`,
		},
		"from sight, long after the flip": {
			reason: "each process waits once for each change",
			terms:  Terms{SettleFromSight: true},
			script: `
				1h         a+3599s   => settles at 1h1m15s
				1h15s      a+3609s   => settles at 1h1m15s
				1h30s      a+3629s   => settles at 1h1m15s
				1h45s      a+3639s   => settles at 1h1m15s
				1h1m0s     a+3659s   => settles at 1h1m15s
				1h1m15s    a+3670s   => settled`,
		},
		"from sight, a reading that comes late": {
			reason: "a server may have stopped and come back in between, with old requests under way, and its lease tells nothing",
			terms:  Terms{SettleFromSight: true},
			script: `
				30s      a+29s     => settles at 1m45s
				45s      a+39s     => settles at 1m45s
				60.1s    a+59s     => settles at 2m15.1s   # 15.1 s after the last one
				10m      a+599s    => settles at 11m15s`,
		},
		"from sight, adopted one by one": {
			reason: "the sight is of all servers having adopted",
			terms:  Terms{SettleFromSight: true},
			script: `
				10s   a+8s b+9s     => waits for a, b
				20s   a+18s b+9s    => waits for b
				21s   a+18s b+19s   => settles at 1m36s
				36s   a+28s b+29s   => settles at 1m36s
				51s   a+48s b+49s   => settles at 1m36s
				66s   a+58s b+59s   => settles at 1m36s
				81s   a+78s b+79s   => settles at 1m36s
				96s   a+88s b+89s   => settled`,
		},
		"stale leases accepted": {
			reason: "servers with a stale lease are passed over, those between two renewals are not",
			terms:  Terms{AcceptStaleLeases: true},
			script: `
				5s    a-2s b-20s     => waits for a
				25s   a+18s b-20s    => settles at 1m16s
				76s   a+68s b-20s    => settled`,
		},
		"stale leases accepted, from sight": {
			reason: "acceptance shortens no time",
			terms:  Terms{AcceptStaleLeases: true, SettleFromSight: true},
			script: `
				25s    a+18s b-20s   => settles at 1m40s
				40s    a+38s b-20s   => settles at 1m40s
				55s    a+48s b-20s   => settles at 1m40s
				70s    a+68s b-20s   => settles at 1m40s
				85s    a+78s b-20s   => settles at 1m40s
				100s   a+98s b-20s   => settled`,
		},
		"no leases": {
			reason: "where they can't be read, time alone decides",
			script: `
				1s    => settles at 1m16s
				75s   => settles at 1m16s
				76s   => settled`,
		},
		"no leases, from sight": {
			reason: "time alone, from our first reading",
			terms:  Terms{SettleFromSight: true},
			script: `
				1h        => settles at 1h1m15s
				1h1m15s   => settled`,
		},
		"leases that become readable": {
			reason: "a server that appears with a stale lease is waited for from then on",
			script: `
				50s    => settles at 1m16s
				70s    a+68s b-20s   => waits for stale b
				80s    a+78s b+79s   => settles at 2m35s`,
		},
		"half a minute of settling": {
			reason: "a fifth of it, 6 s, is the watch's",
			terms:  Terms{Settle: 30 * time.Second},
			script: `
				8s    a+6.999s   => waits for a
				8s    a+7s       => settles at 31s
				31s   a+27s      => settled`,
		},
		"no settling": {
			reason: "no time is spent, but a server must have renewed since the flip",
			terms:  Terms{Settle: -1},
			script: `
				1s    a-2s b+0s    => waits for a, b
				2s    a+1s b+0s    => waits for b
				5s    a+1s b+4s    => settled
				30s   a+28s b-10s  => waits for stale b
				31s   a+28s b+31s  => settled`,
		},
		"a nanosecond of settling": {
			reason: "a share of almost nothing is nothing, not a fault",
			terms:  Terms{Settle: 1},
			script: `
				0.5s          a+0.5s   => waits for a
				1s            a+1s     => settles at 1.000000001s
				1.000000001s  a+1s     => settled`,
		},
		"the flip is not recorded": {
			reason: "without managedFields the change is as old as our first reading, at most",
			edit:   func(crd *apiextensionsv1.CustomResourceDefinition) { crd.ManagedFields = nil },
			script: `
				1h        a+3599s   => waits for a
				1h20s     a+3619s   => settles at 1h1m16s
				1h1m16s   a+3670s   => settled`,
		},
		"the server's clock cut to the second": {
			reason: "our time is a lower bound, so a renewal may seem to be in the future",
			script: `
				20s   a+20.9s   => settles at 1m16s
				76s   a+76.9s   => settled`,
		},
		"the clock goes back": {
			reason: "a reading that seems earlier waits longer, never less",
			script: `
				76s   a+70s   => settled
				70s   a+70s   => settles at 1m16s
				76s   a+70s   => settled`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			crd := kubetest.Widgets()
			if tc.edit != nil {
				tc.edit(crd)
			}
			var s History
			for line := range strings.SplitSeq(strings.TrimSpace(tc.script), "\n") {
				r, want := parseReading(t, line)
				if diff := cmp.Diff(want, decisionOf(s.Observe(crd, r.servers, r.now, tc.terms))); diff != "" {
					t.Errorf("%s\n%s\n(-want +got):\n%s", tc.reason, strings.TrimSpace(line), diff)
				}
			}
		})
	}
}

var flip = kubetest.Flip

// reading is one reading of the servers.
type reading struct {
	now     time.Time
	servers []Server
}

// parseReading reads one line of a script.
func parseReading(t *testing.T, line string) (reading, string) {
	t.Helper()
	line, _, _ = strings.Cut(line, "#")
	seen, want, ok := strings.Cut(line, "=>")
	words := strings.Fields(seen)
	if !ok || len(words) == 0 {
		t.Fatalf("can't read %q", line)
	}
	f := reading{now: sinceFlip(t, words[0])}
	for _, word := range words[1:] {
		name, renewed := word[:1], word[1:]
		f.servers = append(f.servers, Server{Name: name, Renewed: sinceFlip(t, renewed)})
	}
	return f, strings.TrimSpace(want)
}

func sinceFlip(t *testing.T, s string) time.Time {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return flip.Add(d)
}

// decisionOf is a settlement in the words of the scripts.
func decisionOf(v Settlement) string {
	stale := map[string]bool{}
	for _, s := range v.Stale {
		stale[s.Name] = true
	}
	var names []string
	for _, s := range v.Waiting {
		if stale[s.Name] {
			names = append(names, "stale "+s.Name)
			delete(stale, s.Name)
		} else {
			names = append(names, s.Name)
		}
	}
	switch {
	case len(stale) > 0:
		return fmt.Sprintf("stale leases that are not waited for: %v", stale)
	case v.Settled && len(v.Waiting) > 0:
		return "settled, though it waits for " + strings.Join(names, ", ")
	case v.Settled:
		return "settled"
	case len(v.Waiting) > 0:
		return "waits for " + strings.Join(names, ", ")
	}
	return "settles at " + v.Until.Sub(flip).String()
}

// TestNextRenewal: leases are read again when the next renewals are due, so that a run waits no
// longer than the API servers need, and sends few requests meanwhile.
func TestNextRenewal(t *testing.T) {
	cases := map[string]struct {
		reason  string
		reading string
		want    time.Duration // from the reading
	}{
		"renewed a moment ago":  {"a lease that becomes stale must not go unnoticed", "1s a+0.5s", Again},
		"about to renew":        {"10 s and 4 % after the last renewal", "8s a-1s", 1400 * time.Millisecond},
		"two servers":           {"the last of them decides", "8s a-1s b+0s", 2400 * time.Millisecond},
		"late":                  {"it renews at any moment", "9.5s a-1s", overdue},
		"a stale lease":         {"nothing tells when it is renewed", "19s a-1s", Again},
		"stale, another is due": {"the stale one is waited for in any case", "8s a-2s b-9s", Again},
	}
	for name, tc := range cases {
		var s History
		r, _ := parseReading(t, tc.reading+" =>")
		if got := s.Observe(kubetest.Widgets(), r.servers, r.now, Terms{}).Until.Sub(r.now); got != tc.want {
			t.Errorf("%s: %s, want %s: %s", name, got, tc.want, tc.reason)
		}
	}
}

func TestChangedBefore(t *testing.T) {
	status := specEntry("kube-apiserver", flip.Add(time.Hour))
	status.Subresource = "status"
	timeless := specEntry("ancient", time.Time{})
	timeless.Time = nil

	cases := map[string]struct {
		reason string
		fields []metav1.ManagedFieldsEntry
		want   time.Duration // after flip
		known  bool
	}{
		"one writer": {
			reason: "the second is for the part that was cut off",
			fields: []metav1.ManagedFieldsEntry{specEntry("kubectl", flip)},
			want:   time.Second, known: true,
		},
		"several writers": {
			reason: "the newest bounds all, in whatever order they are listed",
			fields: []metav1.ManagedFieldsEntry{specEntry("a", flip.Add(-time.Hour)), specEntry("b", flip.Add(time.Minute)), specEntry("c", flip)},
			want:   time.Minute + time.Second, known: true,
		},
		"writers of metadata": {
			reason: "our own checkpoint must not make us wait",
			fields: []metav1.ManagedFieldsEntry{specEntry("kubectl", flip), entry("godwit", flip.Add(time.Hour), `{"f:metadata":{"f:annotations":{}}}`)},
			want:   time.Second, known: true,
		},
		"writers of the status": {
			reason: "neither must conditions and storedVersions",
			fields: []metav1.ManagedFieldsEntry{specEntry("kubectl", flip), status},
			want:   time.Second, known: true,
		},
		"an entry without fields": {
			reason: "what owns nothing is passed over",
			fields: []metav1.ManagedFieldsEntry{{Manager: "empty"}, specEntry("kubectl", flip)},
			want:   time.Second, known: true,
		},
		"an entry of the spec without a time": {
			reason: "it may be the newest",
			fields: []metav1.ManagedFieldsEntry{timeless, specEntry("kubectl", flip)},
		},
		"only writers of metadata": {
			reason: "no entry says when the spec was written",
			fields: []metav1.ManagedFieldsEntry{entry("godwit", flip, `{"f:metadata":{}}`), timeless},
		},
		"stripped": {reason: "there are no entries"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, known := ChangedBefore(kubetest.Widgets(func(crd *apiextensionsv1.CustomResourceDefinition) { crd.ManagedFields = tc.fields }))
			if known != tc.known {
				t.Fatalf("known = %t, want %t: %s", known, tc.known, tc.reason)
			}
			if want := flip.Add(tc.want); known && !got.Equal(want) {
				t.Errorf("changed before %s, want %s: %s", got, want, tc.reason)
			}
		})
	}
}

func TestSpecManagers(t *testing.T) {
	apply := specEntry("argocd", flip)
	apply.Operation = metav1.ManagedFieldsOperationApply
	crd := kubetest.Widgets(func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.ManagedFields = []metav1.ManagedFieldsEntry{specEntry("kubectl", flip), entry("godwit", flip, `{"f:metadata":{}}`), apply}
	})
	if diff := cmp.Diff([]string{"kubectl (Update)", "argocd (Apply)"}, SpecManagers(crd)); diff != "" {
		t.Errorf("those who fight over a spec own parts of it (-want +got):\n%s", diff)
	}
}

func TestTerms(t *testing.T) {
	cases := map[string]struct {
		reason           string
		settle           time.Duration
		whole, watchPart time.Duration
	}{
		"zero value": {"the safe default", 0, 75 * time.Second, 15 * time.Second},
		"negative":   {"no time at all", -time.Hour, 0, 0},
		"set":        {"as the user says", 5 * time.Minute, 5 * time.Minute, time.Minute},
		"tiny":       {"the share rounds to nothing", 3, 3, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Terms{Settle: tc.settle}
			if p.Time() != tc.whole || p.watchLag() != tc.watchPart {
				t.Errorf("settle %s, watch %s, want %s and %s: %s", p.Time(), p.watchLag(), tc.whole, tc.watchPart, tc.reason)
			}
		})
	}
}

// A server that stops and comes back between two readings is never seen with a stale lease.
func TestNextVisitIsBeforeAStaleLeaseCanGoUnseen(t *testing.T) {
	for _, now := range []time.Duration{time.Second, 70 * time.Second, 10 * time.Minute} {
		at := flip.Add(now)
		v := new(History).Observe(kubetest.Widgets(), []Server{{Name: "b", Renewed: flip}}, at, Terms{})
		if wait := v.Until.Sub(at); wait <= 0 || wait > staleAfter {
			t.Errorf("at %s: the next reading is in %s, want it within %s", now, wait, staleAfter)
		}
	}
}

// Who writes metadata again and again, and owns part of the spec, must not put
// the migration off for ever: at one generation nothing of the spec changed.
func TestBusyMetadataDoesNotStarveTheMigration(t *testing.T) {
	var s History
	for at := time.Minute; at < time.Hour; at += time.Minute {
		crd := kubetest.Widgets(func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.ManagedFields[0].Time = &metav1.Time{Time: flip.Add(at)}
		})
		now := flip.Add(at)
		if s.Observe(crd, []Server{{Name: "a", Renewed: now}}, now, Terms{}).Settled {
			return
		}
	}
	t.Error("an hour at one generation, and it never settled")
}

func specEntry(manager string, t time.Time) metav1.ManagedFieldsEntry {
	return entry(manager, t, `{"f:metadata":{"f:labels":{}},"f:spec":{"f:versions":{}}}`)
}

func entry(manager string, t time.Time, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: t},
		FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}
}
