package frame

import (
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/kube"
)

const (
	// DialTimeout is a sixth of client-go's timeout: a server on the other side of the
	// world accepts a connection within a second.
	DialTimeout = 5 * time.Second
	// firstAnswerTimeout is for a server that accepts connections and sends no answer.
	firstAnswerTimeout = 8 * time.Second
)

// Connection is a connection to an API server that has answered.
type Connection struct {
	Config  *rest.Config
	Client  *rest.RESTClient
	server  string
	context string // of the kubeconfig; empty in a cluster
	Purpose Purpose
}

// WhoAmI returns the user name that the API server authenticates, or a placeholder.
func (c *Connection) WhoAmI(ctx context.Context) string {
	if name := kube.UserName(ctx, c.Client); name != "" {
		return name
	}
	return "USER"
}

// Where returns the address of the API server and the context of the kubeconfig.
func (c *Connection) Where() string {
	if c.context == "" {
		return c.server
	}
	return c.server + " (context " + c.context + ")"
}
