package ocm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/process"
)

// restartDelay is the time after which the simulated kubelet restarts an agent.
const restartDelay = 500 * time.Millisecond

// Cluster is a managed cluster: its real registration agent, and the simulated programs around it.
type Cluster struct {
	Name string

	program    string
	kubeconfig string // of the cluster's own API server
	log        *logFile
	dir        string

	mu          sync.Mutex
	bootstraps  [][]byte
	timeout     int32
	unreachable []string
	agent       *process.Process
	applied     appliedWork
	// restarts counts the ends of the agent, including those after a change of its configuration.
	restarts int

	stopping   chan struct{} // closed by Stop: do not start another agent
	endAgents  func()        // closes stopping
	kubelet    chan struct{} // closed when keepAgent has returned
	klusterlet *loop
}

// Restarts returns how often the agent has ended.
func (c *Cluster) Restarts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.restarts
}

// LogFile returns the path of the file with the output of the agent.
func (c *Cluster) LogFile() string { return filepath.Join(c.dir, "agent.log") }

// CutOff makes a hub unreachable for the cluster: kubeconfigs for the hub that the cluster gets afterwards have a proxy that
// does not listen.
func (c *Cluster) CutOff(h *Hub) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unreachable = append(c.unreachable, h.Config().Host)
}

// Stop ends the agent, as if the machines of the cluster were switched off. It may be called again.
func (c *Cluster) Stop() error {
	c.klusterlet.stop()
	c.mu.Lock()
	c.endAgents()
	agent := c.agent
	c.mu.Unlock()
	var err error
	if agent != nil && !agent.Ended() {
		err = agent.Kill() // at SIGTERM it takes seconds to end
	}
	<-c.kubelet
	return err
}

// keepAgent simulates the kubelet: it restarts an agent that has ended.
func (c *Cluster) keepAgent() {
	defer close(c.kubelet)
	for {
		c.mu.Lock()
		agent := c.agent
		c.mu.Unlock()
		<-agent.Exited()
		select {
		case <-c.stopping:
		case <-time.After(restartDelay):
		}
		started, err := c.restartAgent()
		if !started {
			return
		}
		if err != nil {
			_, _ = fmt.Fprintf(c.log, "%s: restart the agent: %v\n", c.Name, err)
			return
		}
	}
}

// restartAgent starts the agent again, unless the cluster is being stopped.
func (c *Cluster) restartAgent() (started bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restarts++
	select {
	case <-c.stopping:
		return false, nil
	default:
		return true, c.startAgent()
	}
}

// startAgent starts the agent as the klusterlet's deployment does, with one hub or with several. The caller locks.
func (c *Cluster) startAgent() error {
	var files []string
	for i, kubeconfig := range c.bootstraps {
		for _, server := range c.unreachable {
			var err error
			if kubeconfig, err = throughProxy(kubeconfig, server, closedProxy); err != nil {
				return err
			}
		}
		file := filepath.Join(c.dir, "bootstrap-"+strconv.Itoa(i)+".kubeconfig")
		if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
			return fmt.Errorf("write a bootstrap kubeconfig: %w", err)
		}
		files = append(files, file)
	}
	address, err := controlplane.FreeAddress()
	if err != nil {
		return err
	}
	args := []string{
		"agent", "--kubeconfig=" + c.kubeconfig, "--spoke-cluster-name=" + c.Name, "--listen=" + address,
		"--hub-kubeconfig-dir=" + c.hubDir(), "--hub-kubeconfig-secret=hub-kubeconfig-" + c.Name,
		"--bootstrap-kubeconfig-secret=" + singleHub + "-" + c.Name,
	}
	switch len(files) {
	case 0:
		return errors.New("start the agent: its klusterlet has no bootstrap kubeconfig")
	case 1:
		args = append(args, "--bootstrap-kubeconfig="+files[0])
	default:
		args = append(args, "--feature-gates="+multipleHubs+"=true", "--hub-connection-timeout-seconds="+strconv.Itoa(int(c.timeout)))
		for _, file := range files {
			args = append(args, "--bootstrap-kubeconfigs="+file)
		}
	}
	c.agent, err = startRegistration(c.program, "agent of "+c.Name, c.LogFile(), args...)
	return err
}

// closedProxy has a port on which no process listens, since only the system's administrator may listen on it.
const closedProxy = "http://127.0.0.1:1"

// appliedWork identifies the last ManifestWork that the klusterlet has applied, and its hub.
type appliedWork struct {
	server     string
	uid        types.UID
	generation int64
}

// hubDir returns the folder in which the agent keeps its kubeconfig for the hub.
func (c *Cluster) hubDir() string { return filepath.Join(c.dir, "hub") }
