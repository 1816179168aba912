// Command provider-ldap is a Crossplane provider that manages an LDAP directory.
package main

import (
	"errors"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/godwit-dev/godwit/examples/provider-ldap/provider"
	"github.com/godwit-dev/godwit/externalname/crossplane/export"
)

func main() {
	ctrl.SetLogger(zap.New())
	err := provider.Command(ctrl.GetConfig).ExecuteContext(ctrl.SetupSignalHandler())
	var exit *provider.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(int(exit.Code))
	case err != nil:
		fmt.Fprintln(os.Stderr, "provider-ldap:", err)
		os.Exit(int(export.Error))
	}
}
