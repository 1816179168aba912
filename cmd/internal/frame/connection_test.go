package frame

import (
	"testing"

	"k8s.io/client-go/rest"
)

// TestPlainClientHasNoRateLimit: a command asks for its permissions one after another, and the
// default of client-go, five requests per second, would make the user wait for seconds.
func TestPlainClientHasNoRateLimit(t *testing.T) {
	c, err := plainClient(&rest.Config{Host: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if c.GetRateLimiter() != nil {
		t.Error("the client paces its requests")
	}
}
