package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/cmd/internal/plan/planreport"
	"github.com/godwit-dev/godwit/internal/kube"
)

// clustersAtOnce bounds the schemas in memory: a cluster with 300 CRDs has about 20 MB of them.
const clustersAtOnce = 8

// reportEvery is how often the console may name the clusters that are left. Most clusters are read before its first time.
const reportEvery = 3 * time.Second

// unread is the set of clusters that are not read yet.
type unread struct {
	mu    sync.Mutex
	names []string
}

func (u *unread) remove(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.names = slices.DeleteFunc(u.names, func(n string) bool { return n == name })
}

func (u *unread) String() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return strings.Join(u.names, ", ")
}

// report prints the clusters that are left, until stop: first after reportEvery, then whenever the number has
// decreased.
func (u *unread) report(console *frame.Console) (stop func()) {
	var last string
	ticks := time.NewTicker(reportEvery)
	ended := make(chan struct{})
	var reports sync.WaitGroup
	reports.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-ticks.C:
				if now := u.String(); now != "" && now != last {
					console.Printf("still reading %s\n", now)
					last = now
				}
			}
		}
	})
	return func() {
		ticks.Stop()
		close(ended)
		reports.Wait()
	}
}

// gather reads all clusters. --cluster-timeout applies to each cluster. After an interruption, the rows show which
// domains were not read. The console shows the clusters that are left.
func gather(ctx context.Context, apps []*frame.App, limit time.Duration, d depth) []planreport.Row {
	var left unread
	for _, a := range apps {
		left.names = append(left.names, nameOf(a))
	}
	defer left.report(apps[0].Console)()
	all := make([][]planreport.Row, len(apps))
	next := make(chan struct{}, clustersAtOnce)
	var scans sync.WaitGroup
	for i, a := range apps {
		next <- struct{}{}
		scans.Go(func() {
			defer func() { <-next }()
			ctx, cancel := kube.WithLimit(ctx, limit, errSlow)
			defer cancel()
			all[i] = rowsOf(ctx, a, d)
			name := nameOf(a)
			for j := range all[i] {
				all[i][j].Cluster = name
			}
			left.remove(name)
		})
	}
	scans.Wait()
	var rows []planreport.Row
	for _, of := range all {
		rows = append(rows, of...)
	}
	return rows
}

// onceEach leaves out the rows of a context whose cluster has rows by another context, and notes it.
func onceEach(rows []planreport.Row) (kept []planreport.Row, notes []string) {
	first, left := map[string]string{}, map[string]bool{} // by UID, and by context
	for _, r := range rows {
		known, seen := first[r.ClusterUID]
		switch {
		case r.ClusterUID == "" || seen && known == r.Cluster:
		case !seen:
			first[r.ClusterUID] = r.Cluster
		default:
			if !left[r.Cluster] {
				left[r.Cluster] = true
				notes = append(notes, fmt.Sprintf("%s is the cluster of %s: its rows are left out", r.Cluster, known))
			}
			continue
		}
		kept = append(kept, r)
	}
	return kept, notes
}

// codeOf returns the exit code. A domain that can't be read is an error, as in the plan of a domain.
func codeOf(rows []planreport.Row) frame.Code {
	code := frame.OK
	for _, r := range rows {
		switch r.State {
		case planreport.Clean:
		case planreport.Ready, planreport.InProgress:
			code = frame.Worst(code, frame.Pending)
		case planreport.Blocked:
			code = frame.Worst(code, frame.Refused)
		default:
			code = frame.Worst(code, frame.Error)
		}
	}
	return code
}
