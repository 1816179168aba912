package main

import (
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/godwit-dev/godwit/bench/internal/widget"
	"github.com/godwit-dev/godwit/test/controlplane"
)

// bench is one run of the command.
type bench struct {
	objects, faultObjects, rounds int
	limit                         time.Duration
	faults                        []string
	godwit, servers, out          string

	dir        string
	plane      *controlplane.ControlPlane
	user       *rest.Config
	kubeconfig string
	clients    dynamic.Interface
	meter      *meter
	resource   *widget.Resource
	result     result
}
