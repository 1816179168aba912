package operator

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"

	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/cmd/internal/permission"
)

// What the process itself needs. Leader election has a lease where the manager is,
// and tells of itself there by either kind of event.
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,namespace=OWN
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch,namespace=OWN
// The API server authenticates and authorizes each client that reads the metrics.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// The chart can't read beyond its folder, and go:embed not beyond a package's:
// hence one file twice.
//go:generate env GOWORK=off go tool -modfile=../../../tools/controller-gen/go.mod controller-gen rbac:roleName=storage-version-migrator,fileName=storage-version-migrator.yaml paths=. paths=../controller/crdinventory paths=../controller/crdmigration paths=../controller/crdscope output:rbac:dir=roles
//go:generate env GOWORK=off go tool -modfile=../../../tools/controller-gen/go.mod controller-gen rbac:roleName=revision-upgrader,fileName=revision-upgrader.yaml paths=. paths=../controller/revisionupgrade output:rbac:dir=roles
//go:generate env GOWORK=off go tool -modfile=../../../tools/controller-gen/go.mod controller-gen rbac:roleName=cluster-migration,fileName=cluster-migration.yaml paths=. paths=../controller/clustermigration output:rbac:dir=roles
//go:generate sh -c "cp roles/*.yaml ../../../charts/godwit/files/roles/"

// ownNamespace is the placeholder for the manager's namespace in the generated roles. It is not a valid name, so a role
// can't be applied unchanged.
const ownNamespace = "OWN"

//go:embed roles/*.yaml
var generatedRoles embed.FS

// roles returns the roles from the markers of a feature, for a manager in a namespace. The ClusterRole comes first.
func roles(feature, namespace string) []permission.Role {
	file, err := generatedRoles.ReadFile("roles/" + component(feature) + ".yaml")
	if err != nil {
		panic(err) // it is compiled in
	}
	all, err := decodeRoles(file, namespace)
	if err != nil {
		panic(err) // the file is compiled in
	}
	return all
}

func decodeRoles(file []byte, namespace string) ([]permission.Role, error) {
	all := []permission.Role{{}}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(file)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("split the generated roles: %w", err)
		}
		var one rbacv1.Role // or a ClusterRole, which looks the same
		if err := yaml.UnmarshalStrict(document, &one); err != nil {
			return nil, fmt.Errorf("decode a generated role: %w", err)
		}
		if one.Namespace == ownNamespace {
			one.Namespace = namespace
		}
		all = permission.Add(all, one.Namespace, one.Rules...)
	}
}
