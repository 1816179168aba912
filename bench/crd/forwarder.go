package main

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
)

// forwarder counts the bytes between a client and the API server.
type forwarder struct {
	listener net.Listener
	target   string
	bytes    atomic.Int64
}

func newForwarder(ctx context.Context, target string) (*forwarder, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &forwarder{listener: listener, target: strings.TrimPrefix(strings.TrimSuffix(target, "/"), "https://")}
	go f.serve(ctx)
	return f, nil
}

func (f *forwarder) address() string { return f.listener.Addr().String() }

func (f *forwarder) close() { _ = f.listener.Close() }

func (f *forwarder) serve(ctx context.Context) {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := (&net.Dialer{}).DialContext(ctx, "tcp", f.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		go f.forward(client, server)
		go f.forward(server, client)
	}
}

func (f *forwarder) forward(to, from net.Conn) {
	_, _ = io.Copy(to, io.TeeReader(from, counter{&f.bytes}))
	_ = to.Close()
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}
