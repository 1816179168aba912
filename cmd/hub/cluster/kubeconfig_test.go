package cluster

import (
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestCheckKubeconfig: what another hub sends has an address and a token, and nothing that a
// klusterlet would read or run on the cluster.
//
// Matrix: H80.
func TestCheckKubeconfig(t *testing.T) {
	cases := map[string]struct {
		change  func(*clientcmdapi.Config)
		refused bool
	}{
		"AsHubsMakeIt": {func(*clientcmdapi.Config) {}, false},
		"Proxy":        {func(c *clientcmdapi.Config) { c.Clusters["default-cluster"].ProxyURL = "http://proxy.example.com" }, false},
		"Program": {func(c *clientcmdapi.Config) {
			c.AuthInfos["bootstrap"].Exec = &clientcmdapi.ExecConfig{Command: "sh", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode}
		}, true},
		"OtherUser": {func(c *clientcmdapi.Config) { c.AuthInfos["other"] = &clientcmdapi.AuthInfo{TokenFile: "/etc/shadow"} }, true},
		"Provider": {func(c *clientcmdapi.Config) {
			c.AuthInfos["bootstrap"].AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "x"}
		}, true},
		"Certificate": {func(c *clientcmdapi.Config) { c.AuthInfos["bootstrap"].ClientCertificate = "/var/run/c" }, true},
		"Key":         {func(c *clientcmdapi.Config) { c.AuthInfos["bootstrap"].ClientKey = "/var/run/k" }, true},
		"Authority":   {func(c *clientcmdapi.Config) { c.Clusters["default-cluster"].CertificateAuthority = "/var/run/ca" }, true},
		"NoContext":   {func(c *clientcmdapi.Config) { c.CurrentContext = "" }, true},
		"NoUser":      {func(c *clientcmdapi.Config) { c.Contexts["bootstrap"].AuthInfo = "gone" }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text, err := Kubeconfig("https://hub.example.com", []byte("ca"), "token")
			if err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.Load(text)
			if err != nil {
				t.Fatal(err)
			}
			tc.change(config)
			if text, err = clientcmd.Write(*config); err != nil {
				t.Fatal(err)
			}
			err = CheckKubeconfig(text)
			failure := (*Error)(nil)
			if refused := errors.As(err, &failure) && failure.Reason == ReasonRefusedObject; refused != tc.refused || refused != (err != nil) {
				t.Errorf("%v, want refused: %v", err, tc.refused)
			}
		})
	}
	if err := CheckKubeconfig([]byte("{")); err == nil {
		t.Error("a text that is no kubeconfig is accepted")
	}
}

// TestExpiresLater: the kubeconfig with the later expiry is kept, if both are of one hub and say when they expire.
func TestExpiresLater(t *testing.T) {
	token := func(expires int) string {
		return "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, expires)) + ".s"
	}
	kubeconfig := func(server, ca, token string) []byte {
		text, err := Kubeconfig(server, []byte(ca), token)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const hub = "https://hub.example.com"
	other := kubeconfig(hub, "ca", token(1000))
	for name, test := range map[string]struct {
		installed []byte
		want      bool
	}{
		"Later":       {kubeconfig(hub, "ca", token(1001)), true},
		"AtTheSame":   {kubeconfig(hub, "ca", token(1000)), false},
		"Earlier":     {kubeconfig(hub, "ca", token(999)), false},
		"OtherServer": {kubeconfig("https://old.example.com", "ca", token(1001)), false},
		"OtherCA":     {kubeconfig(hub, "old", token(1001)), false},
		"NoToken":     {kubeconfig(hub, "ca", "opaque"), false},
		"NoBase64":    {kubeconfig(hub, "ca", "a.?.b"), false},
		"NoJSON":      {kubeconfig(hub, "ca", "a.e30x.b"), false},
		"Nothing":     {nil, false},
	} {
		if got := ExpiresLater(test.installed, other); got != test.want {
			t.Errorf("%s: it outlasts the other: %v, want %v", name, got, test.want)
		}
	}
	if !ExpiresLater(other, kubeconfig(hub, "ca", "opaque")) {
		t.Error("a token that says when it expires does not outlast one that does not")
	}
	if at, ok := Expires(other); !ok || at.Unix() != 1000 {
		t.Errorf("the token expires at %v, %v, want 1000 s", at, ok)
	}
	if at, ok := Expires(kubeconfig(hub, "ca", "opaque")); ok {
		t.Errorf("a token that does not say when it expires expires at %v", at)
	}
}
