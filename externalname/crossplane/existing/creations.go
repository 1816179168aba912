package existing

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/externalname/crossplane"
)

// Creations are the asynchronous creations that this process has begun. The provider reports the end of each one: Upjet
// calls the function of its CallbackProvider. The zero value works.
type Creations struct {
	mu    sync.Mutex
	begun map[types.UID]string
	ended map[types.NamespacedName]error
}

// Ended records that a creation has ended; err is nil if it was successful.
func (c *Creations) Ended(of types.NamespacedName, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = map[types.NamespacedName]error{}
	}
	c.ended[of] = err
}

// begin returns the ID of a creation, which is unique among processes.
func (c *Creations) begin(of types.UID, name types.NamespacedName) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ended, name)
	if c.begun == nil {
		c.begun = map[types.UID]string{}
	}
	c.begun[of] = "begun " + time.Now().UTC().Format(time.RFC3339Nano)
	return c.begun[of]
}

func (c *Creations) has(of types.UID, operation string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun[of] == operation
}

// result returns how a creation has ended after which there is no external resource. If the answer was lost, or if it was
// successful, a resource may exist.
func (c *Creations) result(of types.NamespacedName) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err, ended := c.ended[of]
	switch {
	case !ended:
		return crossplane.ErrOperationRunning
	case err == nil || answerLost(err):
		return crossplane.ErrOperationNotFound
	}
	return fmt.Errorf("%w: %w", crossplane.ErrOperationFailed, err)
}

func (c *Creations) forget(of types.UID, name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.begun, of)
	delete(c.ended, name)
}

// lostAnswers are parts of the texts of Go's network errors: a client may pass on the text of an error alone, as
// Terraform's diagnostics do.
var lostAnswers = []string{
	"EOF", "connection reset", "broken pipe", "i/o timeout", "deadline exceeded", "context canceled", "Client.Timeout", "connection lost",
}

func answerLost(err error) bool {
	for _, text := range lostAnswers {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
