// Command service serves the external system of the example at an address, such as localhost:8080.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/godwit-dev/godwit/examples/provider-upjet/service"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		os.Exit(1)
	}
}

// readTimeout bounds the time in which a client sends a request.
const readTimeout = 10 * time.Second

func run(args []string) error {
	address := "localhost:8080"
	if len(args) > 0 {
		address = args[0]
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	server := http.Server{Handler: (&service.Service{}).Handler(), ReadHeaderTimeout: readTimeout}
	return server.Serve(listener)
}
