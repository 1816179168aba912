// Package etcdgate lies between an API server and etcd. It can hold the events of some keys back, so that the API server lives,
// renews its lease and writes, and does not see what has changed, as one whose watch hangs.
package etcdgate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// Gate forwards the requests of API servers to etcd.
type Gate struct {
	prefix  []byte
	address string
	server  *grpc.Server
	to      *grpc.ClientConn

	mu   sync.Mutex
	open chan struct{} // closed while nothing is held
}

// New starts a gate in front of etcd, for watches of keys with a prefix.
func New(ctx context.Context, etcd, prefix string) (*Gate, error) {
	to, err := url.Parse(etcd)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &Gate{prefix: []byte(prefix), address: listener.Addr().String(), open: make(chan struct{})}
	close(g.open)
	const limit = 64 << 20
	g.to, err = grpc.NewClient(to.Host, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(limit), grpc.MaxCallSendMsgSize(limit)))
	if err != nil {
		return nil, err
	}
	g.server = grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(g.forward), grpc.MaxRecvMsgSize(limit), grpc.MaxSendMsgSize(limit))
	go func() { _ = g.server.Serve(listener) }() // ends with Stop
	return g, nil
}

// URL is the address for --etcd-servers.
func (g *Gate) URL() string { return "http://" + g.address }

// Hold holds events back from now on.
func (g *Gate) Hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

// Release delivers what was held.
func (g *Gate) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// Stop ends all connections.
func (g *Gate) Stop() error {
	g.Release()
	g.server.Stop()
	return g.to.Close()
}

func (g *Gate) gate() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// raw passes messages on as bytes.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }

func (raw) Name() string { return "proto" }

// forward passes one call on, in both directions.
func (g *Gate) forward(_ any, from grpc.ServerStream) error {
	method, ok := grpc.MethodFromServerStream(from)
	if !ok {
		return fmt.Errorf("a call without a method")
	}
	ctx, cancel := context.WithCancel(from.Context())
	defer cancel()
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, md)
	}
	to, err := g.to.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	w := &watches{prefix: g.prefix, held: map[int64]bool{}}
	isWatch := strings.HasSuffix(method, "Watch/Watch")
	go func() {
		for {
			var message []byte
			if err := from.RecvMsg(&message); err != nil {
				if errors.Is(err, io.EOF) {
					_ = to.CloseSend()
				} else {
					cancel()
				}
				return
			}
			if isWatch {
				w.asked(message)
			}
			if to.SendMsg(&message) != nil {
				return
			}
		}
	}()
	if isWatch {
		return g.deliver(ctx, from, to, w)
	}
	for {
		var message []byte
		if err := to.RecvMsg(&message); err != nil {
			from.SetTrailer(to.Trailer())
			return ended(err)
		}
		if err := from.SendMsg(&message); err != nil {
			return err
		}
	}
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// deliver passes the answers of a stream of watches on. Those of held watches wait in the order in which they came, and the others
// pass them.
func (g *Gate) deliver(ctx context.Context, from grpc.ServerStream, to grpc.ClientStream, w *watches) error {
	answers, failed := make(chan []byte), make(chan error, 1)
	go func() {
		for {
			var message []byte
			if err := to.RecvMsg(&message); err != nil {
				failed <- err
				return
			}
			select {
			case answers <- message:
			case <-ctx.Done():
				return
			}
		}
	}()
	var waiting [][]byte
	for {
		var opened <-chan struct{}
		if len(waiting) > 0 {
			opened = g.gate()
		}
		select {
		case err := <-failed:
			return ended(err)
		case <-opened:
			for i := range waiting {
				if err := from.SendMsg(&waiting[i]); err != nil {
					return err
				}
			}
			waiting = nil
		case message := <-answers:
			if w.isHeld(message) && (len(waiting) > 0 || !isOpen(g.gate())) {
				waiting = append(waiting, message)
				continue
			}
			if err := from.SendMsg(&message); err != nil {
				return err
			}
		}
	}
}

func isOpen(gate <-chan struct{}) bool {
	select {
	case <-gate:
		return true
	default:
		return false
	}
}

// watches knows which watches of a stream are of keys with the prefix. Etcd answers the creation of watches in their order.
type watches struct {
	prefix []byte
	mu     sync.Mutex
	asking []bool
	held   map[int64]bool
}

func (w *watches) asked(message []byte) {
	var request etcdserverpb.WatchRequest
	if proto.Unmarshal(message, &request) != nil {
		return
	}
	create := request.GetCreateRequest()
	if create == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking = append(w.asking, bytes.HasPrefix(create.Key, w.prefix))
}

// isHeld reports whether an answer is of a held watch. The answer to its creation is not.
func (w *watches) isHeld(message []byte) bool {
	var response etcdserverpb.WatchResponse
	if proto.Unmarshal(message, &response) != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if response.Created && len(w.asking) > 0 {
		w.held[response.WatchId] = w.asking[0]
		w.asking = w.asking[1:]
		return false
	}
	return w.held[response.WatchId]
}
