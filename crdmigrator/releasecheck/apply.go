package releasecheck

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/godwit-dev/godwit/internal/kube"
	"github.com/godwit-dev/godwit/internal/quote"
)

// Annotations by which tools find their objects again.
const (
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
	helmRelease = "meta.helm.sh/release-name"
)

// way is one way in which a user installs the release: it patches the live CRD, and keeps what the manifest does not name.
type way struct {
	command string
	// manager is that of a server-side apply; empty for a merge of the manifest.
	manager string
	// applied is the manifest of before; a merge removes what only that one has.
	applied []byte
	// unsure means that the user may install the release in another way, or that the manifest of before is not known.
	unsure bool
}

// waysOf returns the ways in which the live CRD was installed, as far as it shows them, or else those of a user who has it from elsewhere.
func waysOf(live *apiextensionsv1.CustomResourceDefinition) []way {
	var ways []way
	if manifest := []byte(live.Annotations[lastApplied]); json.Valid(manifest) {
		ways = append(ways, way{command: "kubectl apply", applied: manifest})
	}
	for _, manager := range kube.AppliersOf(live, "spec") {
		ways = append(ways, way{command: "kubectl apply --server-side --field-manager=" + quote.Shell(manager), manager: manager})
	}
	if _, known := live.Annotations[helmRelease]; known && len(ways) == 0 {
		ways = append(ways, way{command: "helm upgrade", unsure: true})
	}
	if len(ways) == 0 {
		ways = append(ways, way{command: "kubectl apply", unsure: true}, way{command: "kubectl apply --server-side", manager: "kubectl", unsure: true})
	}
	return ways
}

// manifestOf is the manifest that a user applies: the one of the file, or the CRD as JSON. It has no field that the API server sets.
func manifestOf(next *apiextensionsv1.CustomResourceDefinition, file map[string]any) (map[string]any, error) {
	manifest := maps.Clone(file)
	if manifest == nil {
		text, err := json.Marshal(next)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &manifest); err != nil {
			return nil, err
		}
	}
	manifest["apiVersion"], manifest["kind"] = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	delete(manifest, "status")
	metadata := map[string]any{"name": next.Name}
	if given, ok := manifest["metadata"].(map[string]any); ok {
		for _, key := range []string{"labels", "annotations"} {
			if given[key] != nil {
				metadata[key] = given[key]
			}
		}
	}
	manifest["metadata"] = metadata
	return manifest, nil
}

// recorded is a manifest with itself in the annotation of kubectl apply, which bounds the size of a CRD. Helm writes no such
// annotation.
func (w way) recorded(manifest []byte) ([]byte, error) {
	var object map[string]any
	if w.command != "kubectl apply" {
		return manifest, nil
	}
	if err := json.Unmarshal(manifest, &object); err != nil {
		return nil, err
	}
	metadata := object["metadata"].(map[string]any)
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
	}
	annotations[lastApplied] = string(manifest)
	metadata["annotations"] = annotations
	return json.Marshal(object)
}

// checkApplied finds a release that the API server accepts as a whole, and refuses with what users keep of the live CRD.
//
// It is Unknown if the user may install the release otherwise.
func checkApplied(f Facts) []Finding {
	var all []Finding
	if f.Conflict != "" {
		all = append(all, finding(Safe, ReasonApplyConflicts,
			fmt.Sprintf("%s: the server-side apply of it conflicts with another manager, unless it forces: %s", f.Next.Name, f.Conflict), forceConflicts()))
	}
	if f.Applied.Refusal == "" || f.DryRun.Refusal != "" {
		return all
	}
	result, kept, fix := Refused, "what the file does not name", fixFile()
	if f.Live.Spec.PreserveUnknownFields && strings.Contains(f.Applied.Refusal, "preserveUnknownFields") {
		kept, fix = "preserveUnknownFields: true of the live CRD", stopPreserving()
	}
	if f.keepsConversion() {
		kept, fix = "what other field managers have in spec.conversion", removeConversion(f.Live)
		if sharers := kube.ConversionSharers(f.Live); len(sharers) > 0 {
			kept = "what " + strings.Join(sharers, ", ") + " has in spec.conversion"
		}
	}
	message := fmt.Sprintf("the API server refuses %s by `%s`, which keeps %s: %s", f.Next.Name, f.AppliedBy, kept, f.Applied.Refusal)
	if f.AppliedUnsure {
		result, message = Unknown, "whether you install it so is not known: "+message
	}
	return append(all, finding(result, ReasonServerRefused, message, fix))
}

// keepsConversion reports whether an apply ends the conversion and the API server refuses what is left of it.
func (f Facts) keepsConversion() bool {
	return kube.Converts(f.Live) && !kube.Converts(f.Next) && strings.Contains(f.Applied.Refusal, "spec.conversion.")
}
