package controlplane

import (
	"net"
	"strconv"
	"testing"
)

// TestReservedPortIsNotGivenTwice: the port stays reserved while no process listens on it, as between the choice of a
// port and the start of its server.
func TestReservedPortIsNotGivenTwice(t *testing.T) {
	t.Parallel()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if err := reserve(port); err == nil {
		t.Errorf("port %d is given twice", port)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		t.Fatalf("the one who has the port can't listen on it: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}
