package decision

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/internal/kube"
)

// Discovery is what the server that answers requests for the objects of a CRD says about their resource.
type Discovery struct {
	// Found means that discovery of the storage version has the resource.
	Found bool
	// Hash is the storageVersionHash of the resource; empty if the server publishes none.
	Hash string
	// Service is namespace/name of the service to which the API server forwards the requests of the group and version, as its
	// APIService says. It is read only if the hash is not that of the storage version; empty if there is none, or if it could
	// not be read.
	Service string
	// Unavailable says why the API server can't forward requests to the service, as its APIService says; empty if it can.
	Unavailable string
}

// Answering says which server answers for the objects of a CRD.
type Answering int

const (
	// AnsweredByUnknown means that the server publishes no hash.
	AnsweredByUnknown Answering = iota
	// AnsweredByAdopted means that the server has the storage version of the CRD in discovery. Its handlers follow within
	// milliseconds.
	AnsweredByAdopted
	// AnsweredByLate means that the server has another storage version, so that it still writes that one.
	AnsweredByLate
	// AnsweredByOther means that the API server forwards the requests to another server, which has other objects.
	AnsweredByOther
)

// Answering decides which server answers.
func (d Discovery) Answering(crd *apiextensionsv1.CustomResourceDefinition) Answering {
	switch {
	case d.Hash == storageVersionHash(crd):
		return AnsweredByAdopted
	case d.Service != "":
		return AnsweredByOther
	case d.Found && d.Hash == "":
		return AnsweredByUnknown
	}
	return AnsweredByLate
}

// hashBytes is the length of the hash before its encoding.
const hashBytes = 8

// storageVersionHash is what an API server publishes for a resource that it stores at the storage version of a CRD: a hash of
// group, version and kind. TestStorageVersionHash compares it with that of an API server.
func storageVersionHash(crd *apiextensionsv1.CustomResourceDefinition) string {
	sum := sha256.Sum256([]byte(crd.Spec.Group + "/" + kube.StorageVersion(crd) + "/" + crd.Spec.Names.Kind))
	return base64.StdEncoding.EncodeToString(sum[:hashBytes])
}

// OtherServerAnswers is the blocker of a CRD for whose objects another server answers.
func OtherServerAnswers(crd *apiextensionsv1.CustomResourceDefinition, d Discovery) godwit.Finding {
	apiservice := kube.StorageVersion(crd) + "." + crd.Spec.Group
	if d.Unavailable != "" {
		return godwit.Finding{
			Reason:  ReasonOtherServerAnswers,
			Message: fmt.Sprintf("apiservice %s forwards requests for the objects of %s to service %s, which is not available: %s", apiservice, crd.Name, d.Service, d.Unavailable),
			Fix:     removeAPIService(apiservice),
		}
	}
	return godwit.Finding{
		Reason:  ReasonOtherServerAnswers,
		Message: fmt.Sprintf("apiservice %s forwards requests for the objects of %s to service %s: the objects that are listed are not those of the CRD", apiservice, crd.Name, d.Service),
		Fix:     removeAPIService(apiservice),
	}
}
