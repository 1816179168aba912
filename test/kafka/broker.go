package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/process"
)

const (
	// clusterID has the form that the storage tool expects: 16 bytes in URL-safe base64.
	clusterID = "Z29kd2l0LXRlc3Qta2Fma2"
	// started is the text that the broker logs when it serves. It listens earlier.
	started = "Kafka Server started"
)

// Options of a broker. The zero value works.
type Options struct {
	// Properties are further lines of server.properties, as name=value. They replace a default of that name. Listeners
	// of clients may be replaced; that of the controller is added.
	Properties []string
}

// Broker is a running broker, which is also the controller of its cluster.
type Broker struct {
	installed installation
	dir       string
	address   string

	mu     sync.Mutex
	server *process.Process
}

// Start starts a broker without topics and returns when it serves, after 3 to 6 s. The caller stops it.
func Start(ctx context.Context, o Options) (*Broker, error) {
	installed, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "godwit-kafka-")
	if err != nil {
		return nil, fmt.Errorf("make the broker's folder: %w", err)
	}
	b := &Broker{installed: installed, dir: dir}
	if err := b.configure(o); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if out, err := installed.command("kafka.tools.StorageTool", "format", "--cluster-id", clusterID, "--config", b.config()).CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("format the broker's folder: %w: %s", err, out), os.RemoveAll(dir))
	}
	if err := b.Restart(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return b, nil
}

// Address returns the host and the port for clients. It stays the same across restarts.
func (b *Broker) Address() string { return b.address }

// DataDir returns the folder with all data that the broker stores.
func (b *Broker) DataDir() string { return filepath.Join(b.dir, "data") }

// LogFile returns the path of the file with the output of the broker.
func (b *Broker) LogFile() string { return filepath.Join(b.dir, "kafka.log") }

// PID returns the ID of the broker's process.
func (b *Broker) PID() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.server.PID()
}

// Kill ends the broker as a crash would. Restart starts it again.
func (b *Broker) Kill() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.server.Kill()
}

// Restart starts the broker after Kill, on the same address and data, and returns when it serves.
func (b *Broker) Restart(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	out, err := os.OpenFile(b.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the broker's log: %w", err)
	}
	defer func() { _ = out.Close() }() // the process has its own
	before, err := out.Stat()
	if err != nil {
		return fmt.Errorf("read the broker's log: %w", err)
	}
	command := b.installed.command("kafka.Kafka", b.config())
	command.Stdout, command.Stderr = out, out
	server, err := process.Start("kafka", command)
	if err != nil {
		return err
	}
	if err := server.Await(ctx, "kafka to serve", func(context.Context) error { return b.serves(before.Size()) }); err != nil {
		_ = server.Stop() // Its log has more than the error of the stop.
		return fmt.Errorf("start kafka: %w%s", err, process.Tail(b.LogFile()))
	}
	b.server = server
	return nil
}

// Stop ends the broker and removes its data.
func (b *Broker) Stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Join(b.server.Stop(), os.RemoveAll(b.dir))
}

func (b *Broker) serves(offset int64) error {
	log, err := os.ReadFile(b.LogFile())
	if err != nil {
		return err
	}
	if !bytes.Contains(log[offset:], []byte(started)) {
		return errors.New("it has not started")
	}
	return nil
}

func (b *Broker) config() string { return filepath.Join(b.dir, "server.properties") }

func (b *Broker) configure(o Options) error {
	var err error
	if b.address, err = controlplane.FreeAddress(); err != nil {
		return err
	}
	controller, err := controlplane.FreeAddress()
	if err != nil {
		return err
	}
	controller = strings.Replace(controller, "127.0.0.1", "localhost", 1) // certificates have names
	const controllers = "CONTROLLER://"
	lines := append([]string{
		"process.roles=broker,controller",
		"node.id=1",
		"controller.quorum.voters=1@" + controller,
		"controller.listener.names=CONTROLLER",
		"listeners=CLIENTS://" + b.address + "," + controllers + controller,
		"inter.broker.listener.name=CLIENTS",
		"listener.security.protocol.map=CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs=" + b.DataDir(),
		// Kafka's own topics can have only one replica, because there is one broker.
		"offsets.topic.replication.factor=1",
		"offsets.topic.num.partitions=1",
		"transaction.state.log.replication.factor=1",
		"transaction.state.log.min.isr=1",
		// The first consumer of a group does not wait for others.
		"group.initial.rebalance.delay.ms=0",
		// A topic exists only if the code under test has created it.
		"auto.create.topics.enable=false",
	}, o.Properties...)
	for i, line := range lines {
		if strings.HasPrefix(line, "listeners=") && !strings.Contains(line, controllers) {
			lines[i] += "," + controllers + controller
		}
	}
	if err := os.WriteFile(b.config(), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("configure the broker: %w", err)
	}
	return nil
}
