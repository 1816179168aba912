package cluster

import (
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// TestCheckAddress: only a CA that does not verify the server is untrusted. What can't be reached is not known.
func TestCheckAddress(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	other, _, err := cert.GenerateSelfSignedCertKey("other", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	closed := httptest.NewTLSServer(nil)
	closed.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "https://"), ":")
	for name, test := range map[string]struct {
		url                  string
		ca                   []byte
		untrusted, unreached string
	}{
		"its own CA":        {server.URL, own, "", ""},
		"without a CA":      {closed.URL, nil, "", ""},
		"a former CA":       {server.URL, other, "signed by unknown authority", ""},
		"another host name": {"https://localhost:" + port, own, "not localhost", ""},
		"no certificate":    {server.URL, []byte("x"), "no certificate in PEM", ""},
		"no URL":            {"hub.example.com", own, "is not the URL", ""},
		"not reached":       {closed.URL, own, "", "refused"},
	} {
		untrusted, unreached := CheckAddress(t.Context(), clusterv1.ClientConfig{URL: test.url, CABundle: test.ca})
		if !strings.Contains(untrusted, test.untrusted) || !strings.Contains(unreached, test.unreached) || (untrusted == "") != (test.untrusted == "") || (unreached == "") != (test.unreached == "") {
			t.Errorf("%s: untrusted %q, unreached %q", name, untrusted, unreached)
		}
	}
}
