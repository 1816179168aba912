package serving_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godwit-dev/godwit/cmd/internal/serving"
)

// TestValidate: a folder without a certificate ends the process at its start. Otherwise controller-runtime would serve a certificate
// that Prometheus can't verify, and nothing would say so.
func TestValidate(t *testing.T) {
	empty, damaged := t.TempDir(), t.TempDir()
	for _, name := range []string{serving.Certificate, serving.PrivateKey} {
		if err := os.WriteFile(filepath.Join(damaged, name), []byte("no PEM"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for reason, test := range map[string]struct {
		options serving.Options
		want    string
	}{
		"no folder":        {serving.Options{MetricsAddress: ":8443"}, ""},
		"no metrics":       {serving.Options{MetricsAddress: "0", MetricsCertDir: empty}, ""},
		"an empty folder":  {serving.Options{MetricsAddress: ":8443", MetricsCertDir: empty}, "the folder needs tls.crt and tls.key"},
		"damaged files":    {serving.Options{MetricsAddress: ":8443", MetricsCertDir: damaged}, "load the certificate of the metrics server"},
		"and plain HTTP":   {serving.Options{MetricsAddress: ":8443", MetricsCertDir: empty, InsecureMetrics: true}, "leave one out"},
		"plain HTTP alone": {serving.Options{MetricsAddress: ":8443", InsecureMetrics: true}, ""},
	} {
		err := test.options.Validate()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", reason, err, test.want)
		}
	}
}
