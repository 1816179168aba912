package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

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

// FreeAddress is a FreePort with its host.
func FreeAddress() (string, error) {
	port, err := FreePort()
	return net.JoinHostPort(loopback, strconv.Itoa(port)), err
}

// reserve locks a file that stands for the port. The lock ends with this process.
func reserve(port int) error {
	file := filepath.Join(os.TempDir(), fmt.Sprintf("godwit-test-port-%d", port))
	fd, err := syscall.Open(file, syscall.O_RDONLY|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("open %s: %w", file, err)
	}
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("lock %s: %w", file, err), syscall.Close(fd))
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return errors.Join(err, syscall.Close(fd))
	}
	return listener.Close()
}
