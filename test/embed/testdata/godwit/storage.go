package main

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/godwit-dev/godwit/crdmigrator"
)

func init() {
	setups = append(setups, func(mgr ctrl.Manager) error {
		migrator, err := crdmigrator.New(mgr.GetConfig(), crdmigrator.Options{})
		if err != nil {
			return err
		}
		return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			plan, err := migrator.Plan(ctx, "widgets.example.com")
			if err != nil {
				return err
			}
			_, err = migrator.Run(ctx, plan, func(crdmigrator.Report) {})
			return err
		}))
	})
}
