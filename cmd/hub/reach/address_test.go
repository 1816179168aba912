package reach

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// TestCheck: only a CA that does not verify the server is untrusted. What can't be reached is not known.
//
// Matrix: H135.
func TestCheck(t *testing.T) {
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
		url                 string
		ca                  []byte
		untrusted, unproven string
	}{
		"its own CA":        {server.URL, own, "", ""},
		"a former CA":       {server.URL, other, "signed by unknown authority", ""},
		"another host name": {"https://localhost:" + port, own, "not localhost", ""},
		"no certificate":    {server.URL, []byte("x"), "no certificate in PEM", ""},
		"no URL":            {"hub.example.com", own, `the address of hub east, "hub.example.com", is not the URL`, ""},
		"not reached":       {closed.URL, own, "", "refused"},
	} {
		untrusted, unproven := (Address{ClientConfig: clusterv1.ClientConfig{URL: test.url, CABundle: test.ca}, Hub: "east"}).Check(t.Context())
		if !strings.Contains(untrusted, test.untrusted) || !strings.Contains(unproven, test.unproven) || (untrusted == "") != (test.untrusted == "") || (unproven == "") != (test.unproven == "") {
			t.Errorf("%s: untrusted %q, unproven %q", name, untrusted, unproven)
		}
	}
}

// rootsOfSystem of a process are read once, so each case has a process of its own.
const rootsOfSystem = "GODWIT_TEST_ADDRESS"

// TestCheckWithoutCA: clusters verify the address by the root certificates of their system.
//
// Matrix: H135.
func TestCheckWithoutCA(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux can a file replace the root certificates of the system")
	}
	if url := os.Getenv(rootsOfSystem); url != "" {
		untrusted, unproven := (Address{ClientConfig: clusterv1.ClientConfig{URL: url}, Hub: "east", Direct: true}).Check(t.Context())
		fmt.Printf("untrusted %q, unproven %q\n", untrusted, unproven)
		return
	}
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	closed := httptest.NewTLSServer(nil)
	closed.Close()
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	other, _, err := cert.GenerateSelfSignedCertKey("other", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		url   string
		roots []byte
		want  string
	}{
		"its CA is a root":  {server.URL, own, `untrusted "", unproven ""`},
		"a private CA":      {server.URL, other, "do not verify " + server.URL + ": x509: certificate signed by unknown authority: give the CA with --to-ca-file=FILE, also if the context has insecure-skip-tls-verify"},
		"not reached":       {closed.URL, own, "connection refused"},
		"no root":           {server.URL, nil, `untrusted "", unproven "clusters get no CA for hub east, and the system here has no root certificates`},
		"no URL and no CA":  {"hub.example.com", own, "is not the URL of an API server"},
		"another host name": {strings.Replace(server.URL, "127.0.0.1", "localhost", 1), own, "not localhost"},
	} {
		folder := t.TempDir()
		file := filepath.Join(folder, "roots.pem")
		if err := os.WriteFile(file, test.roots, 0o600); err != nil {
			t.Fatal(err)
		}
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), rootsOfSystem+"="+test.url, "SSL_CERT_FILE="+file, "SSL_CERT_DIR="+filepath.Join(folder, "none"))
		out, err := again.CombinedOutput()
		if err != nil || !strings.Contains(string(out), test.want) {
			t.Errorf("%s: %v\n%s\nwant %s", name, err, out, test.want)
		}
	}
}
