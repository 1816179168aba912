package slapd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// Suffix is the DN above all entries.
	Suffix = "dc=example,dc=org"
	// AdminDN may do everything, without limits.
	AdminDN = "cn=admin," + Suffix
	// UserDN may write everything. A search that is not paged returns at most [SizeLimit] entries to it.
	UserDN = "cn=provider," + Suffix
	// Password is that of both.
	Password = "secret"
	// SizeLimit is less than what tests create, so that a client which does not page is found out.
	SizeLimit = 20

	startTimeout = time.Minute
	stopTimeout  = 10 * time.Second
)

// Server is a running slapd.
type Server struct {
	address string
	dir     string
	command *exec.Cmd
	output  *output
	exited  chan struct{}
	failure error // Why it ended; valid once exited is closed.
}

// Start starts a server with an empty directory, below which the tests create their entries. The caller stops it.
func Start(ctx context.Context) (*Server, error) {
	found, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "slapd-")
	if err != nil {
		return nil, fmt.Errorf("start slapd: %w", err)
	}
	s := &Server{dir: dir, output: &output{}, exited: make(chan struct{})}
	if err := s.start(ctx, found); err != nil {
		return nil, errors.Join(fmt.Errorf("start slapd: %w\n%s", err, s.output), os.RemoveAll(dir))
	}
	return s, nil
}

// URL is where the server listens, such as ldap://127.0.0.1:3890.
func (s *Server) URL() string { return "ldap://" + s.address }

// Address is the host and the port of URL.
func (s *Server) Address() string { return s.address }

// Stop ends the server and removes its data.
func (s *Server) Stop() error {
	select {
	case <-s.exited:
		return errors.Join(fmt.Errorf("stop slapd: it had ended by itself: %v\n%s", s.failure, s.output), os.RemoveAll(s.dir)) //nolint:errorlint // nil after an orderly end
	default:
	}
	err := s.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(stopTimeout):
		err = errors.Join(err, fmt.Errorf("stop slapd: killed after %s", stopTimeout), s.command.Process.Kill())
		<-s.exited
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *Server) start(ctx context.Context, found installation) error {
	config := filepath.Join(s.dir, "slapd.conf")
	if err := s.configure(found, config); err != nil {
		return err
	}
	load := found.command(ctx, "-Tadd", "-f", config)
	load.Stdin, load.Stdout, load.Stderr = strings.NewReader(firstEntries), s.output, s.output
	if err := load.Run(); err != nil {
		return fmt.Errorf("load the first entries: %w", err)
	}
	if err := s.listen(ctx, found, config); err != nil {
		return err
	}
	if err := s.await(ctx); err != nil {
		_ = s.command.Process.Kill()
		<-s.exited
		return err
	}
	return nil
}

// configure writes slapd.conf(5). A test needs no durability, hence dbnosync.
func (s *Server) configure(found installation, config string) error {
	data := filepath.Join(s.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	var b strings.Builder
	for _, schema := range []string{"core", "cosine", "inetorgperson"} {
		fmt.Fprintf(&b, "include %q\n", filepath.Join(found.schemas, schema+".schema"))
	}
	if found.modules != "" {
		fmt.Fprintf(&b, "modulepath %q\nmoduleload back_mdb\n", found.modules)
	}
	fmt.Fprintf(&b, `database mdb
suffix %q
directory %q
maxsize 268435456
dbnosync
rootdn %q
rootpw %s
sizelimit size.soft=%d size.hard=%d size.prtotal=unlimited
index objectClass,entryUUID,uid,mail,cn eq
access to attrs=userPassword by * auth
access to * by dn.exact=%q write by * none
`, Suffix, data, AdminDN, Password, SizeLimit, SizeLimit, UserDN)
	return os.WriteFile(config, []byte(b.String()), 0o600)
}

// firstEntries are the suffix and the user of the provider.
const firstEntries = `dn: ` + Suffix + `
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: ` + UserDN + `
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: provider
userPassword: ` + Password + `
`

// listen starts the server on a port that is free.
func (s *Server) listen(ctx context.Context, found installation, config string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.address = listener.Addr().String()
	if err := listener.Close(); err != nil {
		return err
	}
	// With a level of debugging slapd stays in the foreground.
	s.command = found.command(context.WithoutCancel(ctx), "-f", config, "-h", s.URL(), "-d", "0") // It outlives the call.
	s.command.Stdout, s.command.Stderr = s.output, s.output
	dieWithParent(s.command)
	if err := s.command.Start(); err != nil {
		return err
	}
	go func() {
		s.failure = s.command.Wait()
		close(s.exited)
	}()
	return nil
}

// await returns when the server accepts connections.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-s.exited:
			return fmt.Errorf("it ended: %v", s.failure) //nolint:errorlint // nil after an orderly end
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (i installation) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, i.program, args...)
	if i.libraries != "" {
		command.Env = append(os.Environ(), "LD_LIBRARY_PATH="+i.libraries)
	}
	return command
}

// output keeps what slapd prints, for errors.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
