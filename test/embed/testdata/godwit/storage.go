package main

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/godwit-dev/godwit/crdmigrator"
)

func init() {
	setups = append(setups, func(mgr ctrl.Manager) error {
		return (&crdmigrator.CRDMigrator{
			Client:    mgr.GetClient(),
			APIReader: mgr.GetAPIReader(),
			Selector:  crdmigrator.Selector{Group: "example.com"},
		}).SetupWithManager(context.Background(), mgr, controller.Options{})
	})
}
