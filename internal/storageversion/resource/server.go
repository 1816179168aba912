package resource

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/request"
	"github.com/godwit-dev/godwit/internal/storageversion/internal/settle"
)

// ConfigurationHash is the hash that an API server shows in its metrics for an encryption configuration
// that it has read from a file with this content (computeEncryptionConfigHash of k8s.io/apiserver).
func ConfigurationHash(file []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(file)) }

// WaitError reports that nothing may be written yet. Call Settle again after Wait.
type WaitError struct {
	Wait time.Duration
	// Stale are API servers whose lease is stale.
	Stale []Server
	// Different are API servers that are not known to have the given encryption configuration, with what
	// each shows instead.
	Different []string
}

func (e *WaitError) Error() string {
	switch {
	case len(e.Stale) > 0:
		return "API server " + serverNames(e.Stale) + " has a stale lease: it may still write as before the change"
	case len(e.Different) > 0:
		return ReasonConfigurationNotLoaded.Name + ": " + strings.Join(e.Different, "; ")
	}
	return fmt.Sprintf("requests begun before the change may still be under way for %s", max(e.Wait.Round(time.Second), time.Second))
}

func serverNames(servers []Server) string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.String()
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// fleet is the API servers as their leases show them.
type fleet struct {
	servers   []Server
	processes []string
	// unread says why nothing is known about them; empty if they were read.
	unread string
}

// Servers are the API servers that have a lease; unread says why nothing is known about them.
func (r *Rewriter) Servers(ctx context.Context) (servers []Server, unread string, err error) {
	f, err := r.fleet(ctx)
	return f.servers, f.unread, err
}

func (r *Rewriter) fleet(ctx context.Context) (fleet, error) {
	var leases []coordinationv1.Lease
	err := request.Retry(ctx, func(ctx context.Context) (err error) {
		leases, err = r.client.IdentityLeases(ctx)
		if apierrors.IsForbidden(err) { // a missing permission is a result: it is not retried as the 403 of a starting server is
			return nil
		}
		return err
	})
	switch {
	case err != nil:
		return fleet{}, fmt.Errorf("list the API servers' identity leases: %w", err)
	case leases == nil:
		return fleet{unread: "the permission to list leases.coordination.k8s.io in namespace kube-system is missing"}, nil
	}
	now := r.client.Clock.Now()
	f := fleet{servers: settle.ServersOf(leases, now)}
	for _, lease := range leases {
		known := slices.ContainsFunc(f.servers, func(s Server) bool { return s.Name == lease.Name })
		if known && lease.Spec.HolderIdentity != nil {
			f.processes = append(f.processes, *lease.Spec.HolderIdentity)
		}
	}
	slices.Sort(f.processes)
	return f, nil
}

// Settle returns a [WaitError] until every API server has the change, as far as leases and metrics show. Call
// Rewrite only after Settle has returned nil.
func (r *Rewriter) Settle(ctx context.Context) error {
	if r.options.DryRun {
		return nil
	}
	f, err := r.fleet(ctx)
	if err != nil {
		return err
	}
	if r.earlier.holds(f.processes, r.options.Configuration) {
		return nil
	}
	different, err := r.different(ctx, f)
	if err != nil {
		return err
	}
	now := r.client.Clock.Now()
	stale := settle.SettlementSince(f.servers, now, now, r.terms()).Stale
	switch {
	case len(different)+len(stale) > 0:
		r.ready = time.Time{}
	case r.ready.IsZero():
		r.ready = now
	}
	v := settle.SettlementSince(f.servers, r.ready, now, r.terms())
	if !v.Settled {
		return &WaitError{Wait: v.Until.Sub(now), Stale: v.Stale, Different: different}
	}
	r.journal.record = record{Servers: f.processes, Configuration: r.options.Configuration, Resources: map[string]checkpoint{}}
	return nil
}

// different says which API servers are not known to have the given encryption configuration.
func (r *Rewriter) different(ctx context.Context, f fleet) ([]string, error) {
	if r.options.Configuration == "" {
		return nil, nil
	}
	shown, err := r.configurations(ctx, len(f.servers))
	if err != nil {
		return nil, err
	}
	if f.unread != "" { // without leases, check at least the API server that answers
		f.servers = nil
		if len(shown) == 0 {
			return []string{"the API server shows no encryption configuration"}, nil
		}
	}
	var all []string
	for _, s := range f.servers {
		hash, ok := shown[ConfigurationHash([]byte(s.Name))]
		switch {
		case !ok:
			all = append(all, fmt.Sprintf("API server %s did not answer, or shows no encryption configuration", s))
		case hash != r.options.Configuration:
			all = append(all, fmt.Sprintf("API server %s has the encryption configuration %s, and not %s", s, hash, r.options.Configuration))
		}
	}
	return all, nil
}

// ErrMetricsForbidden reports that the user may not read the metrics that show the encryption configuration.
var ErrMetricsForbidden = errors.New(ReasonConfigurationNotLoaded.Name + ": the permission to get /metrics is missing, without which no encryption configuration shows")

// connectionsPerServer is how often the metrics are read for each API server, each time over a new connection: a
// load balancer that hands out connections in turn, or at random, leads to every one of them.
const connectionsPerServer = 8

// configurationInfo is the metric of kube-apiserver that shows the encryption configuration; alpha, since 1.30.
var configurationInfo = regexp.MustCompile(`(?m)^apiserver_encryption_config_controller_last_config_info\{apiserver_id_hash="([^"]*)",hash="([^"]*)"\} 1`)

// configurations are the hashes of the encryption configurations, by the hash of the API server's name.
func (r *Rewriter) configurations(ctx context.Context, servers int) (map[string]string, error) {
	shown := map[string]string{}
	for range max(servers, 1) * connectionsPerServer {
		text, err := r.metrics(ctx)
		var answered apierrors.APIStatus
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case apierrors.IsForbidden(err):
			return nil, ErrMetricsForbidden
		case err != nil && !errors.As(err, &answered):
			continue // an API server may be down, which its lease shows
		}
		for _, m := range configurationInfo.FindAllSubmatch(text, -1) {
			shown[string(m[1])] = string(m[2])
		}
		if len(shown) >= max(servers, 1) {
			break
		}
	}
	return shown, nil
}

// metrics reads the metrics of one API server over a connection of its own.
func (r *Rewriter) metrics(ctx context.Context) ([]byte, error) {
	config := rest.CopyConfig(r.config)
	config.Dial = (&net.Dialer{Timeout: settle.Again}).DialContext // a function of its own, so that no transport is shared
	config.Transport = nil
	client, err := kube.NewClient(config, r.options.Limiter, r.options.Clock)
	if err != nil {
		return nil, err
	}
	body, err := kube.Body(kube.Do(ctx, client.Get().AbsPath("metrics").SetHeader("Accept", "text/plain").SetHeader("Connection", "close")))
	return body, err
}
