// Package etcd reads a cluster's etcd for package etcdverify. It never writes.
//
// The server at an address may not be an etcd: [Open] finds that out within seconds. It may be the
// etcd of another cluster: [Client.Contains] finds that out.
package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/godwit-dev/godwit/crdmigrator/etcdverify"
)

// answerTimeout is the time for the first answer of a healthy etcd. It is longer than a leader
// election, which takes 1 s by default.
const answerTimeout = 4 * time.Second

// Options are the address of etcd and the credentials. Their names and meanings are those of
// kube-apiserver's flags.
type Options struct {
	Servers                   []string
	CAFile, CertFile, KeyFile string
	Prefix                    string
}

// AddTo registers the flags.
func (o *Options) AddTo(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.Servers, "etcd-servers", nil, "URLs of etcd, separated by commas")
	flags.StringVar(&o.CAFile, "etcd-cafile", "", "file with the certificate authority of etcd's serving certificate")
	flags.StringVar(&o.CertFile, "etcd-certfile", "", "file with the client certificate for etcd")
	flags.StringVar(&o.KeyFile, "etcd-keyfile", "", "file with the key of the client certificate")
	flags.StringVar(&o.Prefix, "etcd-prefix", etcdverify.DefaultPrefix, "prefix of all keys, as in --etcd-prefix of kube-apiserver")
}

// Client is an open connection.
type Client struct {
	kv     clientv3.KV
	close  func() error
	prefix string
}

// Open connects and checks within five seconds that an etcd answers.
func Open(ctx context.Context, o Options) (*Client, error) {
	if err := o.checkServers(); err != nil {
		return nil, err
	}
	tlsConfig, err := o.tlsConfig()
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   o.Servers,
		TLS:         tlsConfig,
		DialTimeout: answerTimeout,
		Logger:      zap.NewNop(), // the error has the cause
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd at %s: %w", strings.Join(o.Servers, ","), err)
	}
	c := &Client{kv: client.KV, close: client.Close, prefix: o.Prefix}
	if err := c.ask(ctx); err != nil {
		_ = client.Close()
		return nil, o.diagnose(ctx, tlsConfig, err)
	}
	return c, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.close() }

func (c *Client) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	_, err := c.kv.Get(ctx, path.Join("/", c.prefix)+"/", clientv3.WithKeysOnly(), clientv3.WithLimit(1))
	return err
}

// Range implements etcdverify.KV.
func (c *Client) Range(ctx context.Context, from, to string, limit, revision int64) ([]etcdverify.Pair, int64, error) {
	resp, err := c.kv.Get(ctx, from, clientv3.WithRange(to), clientv3.WithLimit(limit), clientv3.WithRev(revision))
	if err != nil {
		return nil, 0, err
	}
	pairs := make([]etcdverify.Pair, len(resp.Kvs))
	for i, kv := range resp.Kvs {
		pairs[i] = etcdverify.Pair{Key: string(kv.Key), Value: kv.Value}
	}
	if revision == 0 {
		revision = resp.Header.Revision
	}
	return pairs, revision, nil
}

// encryptedPrefix is what kube-apiserver writes in front of a value that is
// encrypted at rest.
var encryptedPrefix = []byte("k8s:enc:")

// Contains reports whether this etcd contains the object with this UID at a path below the prefix.
// Without this check, an empty etcd, or the etcd of another cluster, would count as a proof.
func (c *Client) Contains(ctx context.Context, object string, uid types.UID) (bool, error) {
	key := path.Join("/", c.prefix, object)
	resp, err := c.kv.Get(ctx, key)
	if err != nil {
		return false, fmt.Errorf("read %s from etcd: %w", key, err)
	}
	if len(resp.Kvs) == 0 {
		return false, nil
	}
	value := resp.Kvs[0].Value
	return bytes.HasPrefix(value, encryptedPrefix) || bytes.Contains(value, []byte(uid)), nil
}

func (o Options) checkServers() error {
	for _, server := range o.Servers {
		u, err := url.Parse(server)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return fmt.Errorf("--etcd-servers %q is not a URL such as https://127.0.0.1:2379", server)
		}
		if u.Scheme == "http" && (o.CAFile != "" || o.CertFile != "") {
			return fmt.Errorf("--etcd-servers %s is plain http, but TLS files are given: write https://%s, or leave the files out", server, u.Host)
		}
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return errors.New("--etcd-certfile and --etcd-keyfile belong together: give both or none")
	}
	return nil
}

// tlsConfig returns nil if the options have neither a TLS file nor an https URL.
func (o Options) tlsConfig() (*tls.Config, error) {
	secure := o.CAFile != "" || o.CertFile != ""
	for _, server := range o.Servers {
		secure = secure || strings.HasPrefix(server, "https://")
	}
	if !secure {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		text, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cafile: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--etcd-cafile %s contains no PEM certificate", o.CAFile)
		}
	}
	if o.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-certfile %s and --etcd-keyfile %s: %w", o.CertFile, o.KeyFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
