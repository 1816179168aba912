package controlplane

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/util/cert"
)

const controllerManager = "kube-controller-manager"

// StartControllerManager starts the real kube-controller-manager against the first API server and returns when it is
// healthy. It then ends namespaces, collects garbage, creates service accounts, and signs approved certificate requests.
// args are further flags as --name=value and replace a default of that name. ControlPlane.Stop ends the controller manager
// as well; stop may be called again.
func (cp *ControlPlane) StartControllerManager(ctx context.Context, args ...string) (stop func() error, err error) {
	if err := checkBinary(cp.binaries, controllerManager); err != nil {
		return nil, fmt.Errorf("find %s: %w: run `make controlplane`, and unset %s if it is set", controllerManager, err, assetsVariable)
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	name := controllerManager + "-" + strconv.Itoa(port)
	flags, err := cp.controllerManagerFlags(name, port)
	if err != nil {
		return nil, err
	}
	command := exec.Command(filepath.Join(cp.binaries, controllerManager), append(flags, args...)...)
	server, err := cp.run(ctx, name, command, func(ctx context.Context) error { return healthy(ctx, port) })
	if err != nil {
		return nil, err
	}
	return server.Stop, nil
}

func (cp *ControlPlane) controllerManagerFlags(name string, port int) ([]string, error) {
	kubeconfig := filepath.Join(cp.dir, name+".kubeconfig")
	if err := WriteKubeconfig(kubeconfig, cp.admin); err != nil {
		return nil, err
	}
	rootCA := filepath.Join(cp.dir, "server-ca.crt")
	if err := cert.WriteCert(rootCA, cp.admin.CAData); err != nil {
		return nil, fmt.Errorf("write the servers' authority: %w", err)
	}
	_, tokenKey := cp.tokenKeyFiles()
	return []string{
		"--kubeconfig=" + kubeconfig,
		// The controller manager runs alone, and the lease of a stopped one would delay the next start by 15 s.
		"--leader-elect=false",
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(port),
		"--cert-dir=" + filepath.Join(cp.dir, name),
		"--root-ca-file=" + rootCA,
		"--service-account-private-key-file=" + tokenKey,
		"--cluster-signing-cert-file=" + cp.authority.certFile,
		"--cluster-signing-key-file=" + cp.authority.keyFile,
	}, nil
}

// healthy does not check the certificate, which the controller manager signs itself.
func healthy(ctx context.Context, port int) error {
	url := "https://" + net.JoinHostPort(loopback, strconv.Itoa(port)) + "/healthz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} //nolint:gosec // see above; on loopback
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", response.Status)
	}
	return nil
}
