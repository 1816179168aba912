package operators_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/godwit-dev/godwit/test/node/operators/page"
	"github.com/godwit-dev/godwit/test/node/operators/writes"
)

// runGodwit runs the command until it succeeds, as a person does who reads why it does not, and returns what it has said each time. It
// closes a channel when the command has said what a moment begins with.
func (g geese) runGodwit(ctx context.Context, when moment, heard chan<- struct{}) ([]string, error) {
	var said []string
	first := sync.OnceFunc(func() { close(heard) })
	defer first()
	settle, begin := "--settle=1s", ""
	if when == settling {
		settle, begin = "--settle=10s", "nothing is written yet" // the other one is still at work when it is over
	}
	for {
		out := &listener{awaited: begin, heard: first}
		err := g.s.commandTo(ctx, out, "godwit", "crd", "run", g.crd(), "--yes", settle)
		said = append(said, out.text.String())
		if failed := (*exec.ExitError)(nil); err == nil || !errors.As(err, &failed) || ctx.Err() != nil {
			return said, err
		}
		select {
		case <-ctx.Done():
			return said, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// listener keeps what is written, and reports each write once it has a text. It has no other method of a buffer: by its ReadFrom, a buffer
// would be filled without Write until the program ends.
type listener struct {
	text    bytes.Buffer
	awaited string
	heard   func()
}

func (l *listener) Write(p []byte) (int, error) {
	n, err := l.text.Write(p)
	if strings.Contains(l.text.String(), l.awaited) {
		l.heard()
	}
	return n, err
}

// moment is when another migrator starts.
type moment string

const (
	// beforeGodwit is when its StorageVersionMigration exists before the command starts.
	beforeGodwit moment = "started before Godwit"
	// together is when both are started at once.
	together moment = "started at the same time as Godwit"
	// settling is after Godwit has made its plan, in which the other one is not, and before it looks again and writes.
	settling moment = "started while Godwit settles"
	during   moment = "started while Godwit writes"
)

// meeting is what two migrators have done.
type meeting struct {
	// said has what each run of Godwit has said.
	said []string
	// took is from the start of Godwit to its end.
	took time.Duration
	// stored are the storedVersions that the CRD had, one after the other.
	stored []string
	// objects were compared before and after, and lost of them are not what they were.
	objects, lost int
	log           writes.Log
}

func (m meeting) yielded() bool {
	return slices.ContainsFunc(m.said, func(said string) bool { return strings.Contains(said, "MigrationInProgress") })
}

// ofOther adds what other programs than Godwit have.
func ofOther(counts map[string]int) int {
	sum := 0
	for program, count := range counts {
		if program != "godwit" {
			sum += count
		}
	}
	return sum
}

// String says what each has done.
func (m meeting) String() string {
	said := []string{"Godwit did not yield"}
	if m.yielded() {
		said[0] = "Godwit yielded"
	}
	said = append(said, fmt.Sprintf("Godwit changed %d objects, the other %d", m.log.Changed["godwit"], ofOther(m.log.Changed)),
		fmt.Sprintf("writes that changed nothing: %d by Godwit, %d by the other", m.log.Equal["godwit"], ofOther(m.log.Equal)))
	for i, program := range m.log.Trims {
		said = append(said, []string{"one trim, by ", "the same storedVersions were written again by "}[min(i, 1)]+program)
	}
	return strings.Join(said, "; ")
}

// meet starts Godwit, and another migrator at a moment, and returns when both have ended.
func (g geese) meet(other migrator, when moment) meeting {
	g.s.t.Helper()
	m := meeting{}
	before := g.s.snapshotOf(g.s.t.Context(), schema.GroupVersion{Group: g.group, Version: "v1"}, "Goose")
	ended := g.trims()
	if when == beforeGodwit {
		g.orderBy(other)
	}
	var failed error
	var running sync.WaitGroup
	heard := make(chan struct{})
	running.Go(func() {
		began := time.Now()
		m.said, failed = g.runGodwit(g.s.t.Context(), when, heard)
		m.took = time.Since(began)
	})
	if when == settling || when == during {
		<-heard
	}
	if when == during {
		g.s.await("Godwit to write", func(ctx context.Context) error {
			stored, err := g.s.CountStored(ctx, g.group, "geese")
			if err == nil && stored[g.group+"/v2"] == 0 {
				err = fmt.Errorf("etcd has %v", stored)
			}
			return err
		})
	}
	if when != beforeGodwit {
		g.orderBy(other)
	}
	running.Wait()
	if failed != nil {
		g.s.t.Fatalf("%v\n%s", failed, strings.Join(m.said, "\n"))
	}
	g.awaitSucceeded(other)
	m.stored = ended()
	for _, version := range []string{"v1", "v2"} {
		now := g.s.snapshotOf(g.s.t.Context(), schema.GroupVersion{Group: g.group, Version: version}, "Goose")
		c := g.s.mustKeep("after both migrators, at "+version, before, now)
		m.objects, m.lost = c.Objects, m.lost+c.Lost
	}
	m.log = g.readWrites()
	return m
}

// readWrites reads the audit log until it has each change.
func (g geese) readWrites() writes.Log {
	g.s.t.Helper()
	var log writes.Log
	g.s.await("the audit log to have each change", func(context.Context) error {
		file, err := os.Open(auditLog())
		if err != nil {
			return err
		}
		defer file.Close()
		log, err = writes.Read(file, g.group, "geese")
		if changed := log.Changed["godwit"] + ofOther(log.Changed); err == nil && changed < migrated {
			err = fmt.Errorf("it has %d changes", changed)
		}
		return err
	})
	return log
}

// expectOneMigration fails unless each object has changed once, no migrator has written one twice, and storedVersions were trimmed once.
func (g geese) expectOneMigration(m meeting) {
	g.s.t.Helper()
	if want := []string{"v1,v2", "v2"}; !slices.Equal(m.stored, want) {
		g.s.t.Errorf("status.storedVersions were %q, want %q: one trim", m.stored, want)
	}
	if len(m.log.Trims) == 0 || slices.Index(m.log.Trims, "godwit") > 0 {
		g.s.t.Errorf("storedVersions were written by %q, want one trim, and no write of it by godwit afterwards", m.log.Trims)
	}
	if changed := m.log.Changed["godwit"] + ofOther(m.log.Changed); changed != migrated || len(m.log.Repeated) > 0 {
		g.s.t.Errorf("%d objects have changed, want %d; %d were written again: %v", changed, migrated, len(m.log.Repeated), m.log.Repeated[:min(5, len(m.log.Repeated))])
	}
	keys, err := g.s.Etcd().Get(g.s.t.Context(), "/registry/"+g.group+"/geese/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil || len(keys.Kvs) != migrated {
		g.s.t.Fatalf("etcd has %d objects, want %d: %v", len(keys.Kvs), migrated, err)
	}
	for _, kv := range keys.Kvs {
		if kv.Version != 2 {
			g.s.t.Errorf("%s has changed %d times, want 2: the creation, and one migration", kv.Key, kv.Version)
		}
	}
	g.s.t.Log(g.s.mustRun("godwit", "crd", "verify", g.crd(), "--etcd-servers="+g.s.EtcdEndpoint()))
}

// expectYield fails unless Godwit has left all changes to a migrator that was there before the first write. It says so at once if the
// migrator was there when Godwit made its plan, and later if the migrator has not ended when Godwit looks again.
func (g geese) expectYield(m meeting, when moment) {
	g.s.t.Helper()
	if changed := m.log.Changed["godwit"]; when != during && changed > 0 {
		g.s.t.Errorf("godwit has changed %d objects beside another migrator", changed)
	}
	if (when == beforeGodwit || when == together) && !strings.Contains(m.said[0], "MigrationInProgress") {
		g.s.t.Errorf("godwit did not say at first that another migrator is at work:\n%s", m.said[0])
	}
}

// gooseGroups has a group for each meeting.
var gooseGroups = []string{
	"before.example.com", "together.example.com", "settling.example.com", "during.example.com",
	"before-in-pod.example.com", "together-in-pod.example.com", "settling-in-pod.example.com", "during-in-pod.example.com",
}

// TestInTreeMigrator: kube-controller-manager migrates the same objects. No object is written twice, and storedVersions are trimmed once.
func TestInTreeMigrator(t *testing.T) { meetAtEachMoment(t, inTree, gooseGroups[:4]) }

// TestKubeStorageVersionMigrator: a migrator in a pod migrates the same objects. It leaves storedVersions to others.
func TestKubeStorageVersionMigrator(t *testing.T) { meetAtEachMoment(t, inPod, gooseGroups[4:]) }

func meetAtEachMoment(t *testing.T, other migrator, groups []string) {
	for i, when := range []moment{beforeGodwit, together, settling, during} {
		t.Run(string(when), func(t *testing.T) { meet(t, other, when, groups[i]) })
	}
}

func meet(t *testing.T, other migrator, when moment, group string) {
	s := newStage(t, other.needs)
	if other.install != nil {
		other.install(s)
	}
	g := s.newGeese(group)
	m := g.meet(other, when)
	t.Logf("godwit said in the first of %d runs:\n%s\nand in the last:\n%s", len(m.said), m.said[0], m.said[len(m.said)-1])
	t.Logf("%s: changes %v, equal writes %v", m, m.log.Changed, m.log.Equal)
	g.expectOneMigration(m)
	g.expectYield(m, when)
	record(t, page.Row{
		Operator: other.name + ", " + string(when), Releases: []string{"v1", "v2"},
		Objects: m.objects, Lost: m.lost, Took: m.took, Also: m.String(),
	})
}
