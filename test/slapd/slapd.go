package slapd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/godwit-dev/godwit/test/controlplane"
	"github.com/godwit-dev/godwit/test/process"
)

const (
	// Suffix is the DN above all entries.
	Suffix = "dc=example,dc=org"
	// AdminDN is a user with all permissions and without limits.
	AdminDN = "cn=admin," + Suffix
	// UserDN is a user that may write everything. A search of this user without pages returns at most [SizeLimit] entries.
	UserDN = "cn=provider," + Suffix
	// Password is the password of both users.
	Password = "secret"
	// SizeLimit is smaller than the number of entries that tests create, so that a test finds a client that does not page.
	SizeLimit = 20
)

// Server is a running slapd.
type Server struct {
	address string
	dir     string
	process *process.Process
}

// Start starts a server that has only the entries [Suffix] and [UserDN]. Tests create their entries below it. The caller stops the server.
func Start(ctx context.Context) (*Server, error) {
	found, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "slapd-")
	if err != nil {
		return nil, fmt.Errorf("start slapd: %w", err)
	}
	s := &Server{dir: dir}
	if err := s.start(ctx, found); err != nil {
		return nil, errors.Join(fmt.Errorf("start slapd: %w%s", err, process.Tail(s.log())), os.RemoveAll(dir))
	}
	return s, nil
}

// URL returns the URL of the server, such as ldap://127.0.0.1:3890.
func (s *Server) URL() string { return "ldap://" + s.address }

// Address returns the host and the port of the URL.
func (s *Server) Address() string { return s.address }

// log returns the path of the file with the output of the server.
func (s *Server) log() string { return filepath.Join(s.dir, "slapd.log") }

// Stop ends the server and removes its data. It returns an error if the server had ended by itself.
func (s *Server) Stop() error {
	err := s.process.Stop()
	if err != nil {
		err = fmt.Errorf("%w%s", err, process.Tail(s.log()))
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *Server) start(ctx context.Context, found installation) error {
	config := filepath.Join(s.dir, "slapd.conf")
	if err := s.configure(found, config); err != nil {
		return err
	}
	out, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open its log: %w", err)
	}
	defer func() { _ = out.Close() }() // the process has its own
	load := found.command(ctx, "-Tadd", "-f", config)
	load.Stdin, load.Stdout, load.Stderr = strings.NewReader(firstEntries), out, out
	if err := load.Run(); err != nil {
		return fmt.Errorf("load the first entries: %w", err)
	}
	if s.address, err = controlplane.FreeAddress(); err != nil {
		return err
	}
	// With -d, slapd stays in the foreground.
	command := found.command(context.WithoutCancel(ctx), "-f", config, "-h", s.URL(), "-d", "0") // It outlives the call.
	command.Stdout, command.Stderr = out, out
	if s.process, err = process.Start("slapd", command); err != nil {
		return err
	}
	if err := s.process.Await(ctx, "slapd to listen", s.accepts); err != nil {
		_ = s.process.Stop() // The log has more than the error of the stop.
		return err
	}
	return nil
}

// accepts reports whether the server accepts connections.
func (s *Server) accepts(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return err
	}
	return conn.Close()
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

func (i installation) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, i.program, args...)
	if i.libraries != "" {
		command.Env = append(os.Environ(), "LD_LIBRARY_PATH="+i.libraries)
	}
	return command
}
