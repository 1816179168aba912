package account

import (
	"maps"
	"strings"
	"testing"
)

func TestCountRequests(t *testing.T) {
	// The shape is kube-apiserver's; one verb may appear at several priority levels
	// when a schema was changed on the way.
	const metrics = `# HELP apiserver_flowcontrol_dispatched_requests_total [BETA] Number of requests executed by API Priority and Fairness subsystem
# TYPE apiserver_flowcontrol_dispatched_requests_total counter
apiserver_flowcontrol_dispatched_requests_total{flow_schema="bench-godwit-patch",priority_level="workload-low"} 1200
apiserver_flowcontrol_dispatched_requests_total{flow_schema="bench-godwit-patch",priority_level="catch-all"} 3
apiserver_flowcontrol_dispatched_requests_total{flow_schema="bench-godwit-list",priority_level="workload-low"} 40
apiserver_flowcontrol_dispatched_requests_total{flow_schema="service-accounts",priority_level="workload-low"} 9000
# HELP apiserver_request_total [STABLE] Counter of apiserver requests
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",verb="PATCH"} 7777
`
	f, err := parse(strings.NewReader(metrics))
	if err != nil {
		t.Fatal(err)
	}
	got := countRequests(f)
	if want := (Count{"patch": 1203, "list": 40}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v: want the requests of our own schemas only", got, want)
	}
	if got.Total() != 1243 {
		t.Errorf("got %d in all, want 1243", got.Total())
	}
	if since, want := got.Since(Count{"patch": 1200, "list": 40}), (Count{"patch": 3}); !maps.Equal(since, want) {
		t.Errorf("got %v since, want %v", since, want)
	}
	if _, err := parse(strings.NewReader("no metrics{\n")); err == nil {
		t.Error("metrics that cannot be read: no error")
	}
}

func TestCountWrites(t *testing.T) {
	const metrics = `# TYPE apiserver_request_total counter
apiserver_request_total{code="200",dry_run="",group="a.example.com",verb="PATCH"} 100
apiserver_request_total{code="200",dry_run="",group="a.example.com",verb="APPLY"} 20
apiserver_request_total{code="200",dry_run="",group="a.example.com",verb="PUT"} 3
apiserver_request_total{code="200",dry_run="All",group="a.example.com",verb="PATCH"} 1000
apiserver_request_total{code="409",dry_run="",group="a.example.com",verb="PUT"} 1000
apiserver_request_total{code="200",dry_run="",group="a.example.com",verb="LIST"} 1000
apiserver_request_total{code="201",dry_run="",group="a.example.com",verb="POST"} 1000
apiserver_request_total{code="200",dry_run="",group="b.example.com",verb="PATCH"} 1000
`
	f, err := parse(strings.NewReader(metrics))
	if err != nil {
		t.Fatal(err)
	}
	if got := countWrites(f, "a.example.com"); got != 123 {
		t.Errorf("got %d, want 123: no dry run, no failure, no read, no creation, no other group", got)
	}
}
