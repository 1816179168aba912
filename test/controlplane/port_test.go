package controlplane

import (
	"net"
	"strconv"
	"testing"
)

// TestReservedPortIsUnique: the port stays reserved while no process listens on it, as between the choice of a
// port and the start of its server.
func TestReservedPortIsUnique(t *testing.T) {
	t.Parallel()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if err := reserve(port); err == nil {
		t.Errorf("port %d is reserved twice", port)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		t.Fatalf("listen on the reserved port: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}
