package jobservice_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/test/jobservice"
)

func TestMain(m *testing.M) {
	jobservice.Main()
	os.Exit(m.Run())
}

// The service is another process, counts requests, and lets a fault befall as many as it was told to.
func TestProcess(t *testing.T) {
	p, err := jobservice.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	post := func() (int, error) {
		response, err := http.Post(p.URL+"/databases", "application/json", strings.NewReader(`{"name":"a"}`))
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	if err := p.Control(t.Context(), jobservice.Control{Faults: []jobservice.Fault{{Kind: jobservice.Drop, Pattern: "POST /databases", Times: 1}}}); err != nil {
		t.Fatal(err)
	}
	if code, err := post(); err == nil {
		t.Errorf("the answer that was dropped is %d", code)
	}
	// The first request was carried out.
	if code, err := post(); err != nil || code != http.StatusConflict {
		t.Errorf("second answer: %d, %v", code, err)
	}
	if counts, err := p.Requests(t.Context()); err != nil || counts["POST /databases"] != 2 {
		t.Errorf("requests are %v, %v", counts, err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := post(); err == nil {
		t.Error("the service answers after Stop")
	}
}
