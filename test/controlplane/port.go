package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// loopback is the address of every server, so that none is reachable from outside.
const loopback = "127.0.0.1"

// FreePort returns a port of the loopback interface on which no process listens. No other test process gets it before
// this one ends, so that a server may leave the port and come back to it. It is below the ports that systems hand out
// to outgoing connections (32768 and up on Linux, 49152 on macOS), so that none of these takes it in between.
func FreePort() (int, error) {
	var err error
	for range 100 {
		port := 20000 + rand.IntN(12000)
		if err = reserve(port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}

// FreeAddress returns the loopback address with a port from FreePort.
func FreeAddress() (string, error) {
	port, err := FreePort()
	return net.JoinHostPort(loopback, strconv.Itoa(port)), err
}

// reservations are kept until this process ends.
var reservations struct {
	sync.Mutex
	sockets []net.PacketConn
}

// reserve keeps a port by listening on the UDP port of the same number, which no server of the tests uses: the system gives a
// port to one process only, and frees it when the process ends.
func reserve(port int) error {
	address := net.JoinHostPort(loopback, strconv.Itoa(port))
	socket, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	reservations.Lock()
	defer reservations.Unlock()
	reservations.sockets = append(reservations.sockets, socket)
	return listener.Close()
}
