package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/godwit-dev/godwit/crdmigrator/bridge"
	"github.com/godwit-dev/godwit/internal/quote"
)

const (
	script = "bridge.sh"
	// nextFolder has the CRDs of the next release, for the check after the last step.
	nextFolder = "6-next"
)

// folderOf returns the folder of a step's manifests. Its number gives the order of the steps.
func folderOf(k bridge.Kind) string {
	return fmt.Sprintf("%d-%s", slices.Index(bridge.Kinds, k)+1, strings.ToLower(string(k)))
}

// checkEmpty refuses a directory with files, before the command connects to the cluster.
func checkEmpty(directory string) error {
	if directory == "" {
		return nil
	}
	entries, err := os.ReadDir(directory)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("the steps can't be written: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("%s is not empty: specify a directory that does not exist yet", directory)
	}
	return nil
}

// writeFiles writes the manifests of the steps, the CRDs of the next release, and the script.
func writeFiles(directory string, all []release, program, cluster string) error {
	for _, r := range all {
		for _, s := range r.steps.Steps {
			if s.Manifest == nil {
				continue
			}
			if err := writeCRD(filepath.Join(directory, folderOf(s.Kind)), s.Manifest); err != nil {
				return err
			}
		}
		if err := writeCRD(filepath.Join(directory, nextFolder), r.CRD); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(directory, script), []byte(scriptOf(all, program, cluster)), 0o700); err != nil {
		return fmt.Errorf("write the script: %w", err)
	}
	return nil
}

func writeCRD(folder string, crd *apiextensionsv1.CustomResourceDefinition) error {
	text, err := json.Marshal(crd)
	if err != nil {
		return err
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	delete(object, "status")
	if spec, ok := object["spec"].(map[string]any); ok && !crd.Spec.PreserveUnknownFields {
		spec["preserveUnknownFields"] = false // an apply keeps the true of a CRD of apiextensions.k8s.io/v1beta1
	}
	if text, err = yaml.Marshal(object); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("write the steps: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, crd.Name+".yaml"), text, 0o600); err != nil {
		return fmt.Errorf("write the steps: %w", err)
	}
	return nil
}

// scriptOf returns the script that runs the steps. cluster has the flags that choose a cluster, for kubectl and godwit.
func scriptOf(all []release, program, cluster string) string {
	with := func(k bridge.Kind) []string {
		var names []string
		for _, r := range all {
			if slices.ContainsFunc(r.steps.Steps, func(s bridge.Step) bool { return s.Kind == k }) {
				names = append(names, r.Name)
			}
		}
		return names
	}
	var text strings.Builder
	text.WriteString("#!/bin/sh\n" +
		"# The steps from the CRDs of the cluster to those of the next release, made by `" + program + " crd check --steps`.\n" +
		"#\n" +
		"#   sh " + script + "                  runs every step; run it again to resume, or after the end: then it changes nothing\n" +
		"#   sh " + script + " store migrate    runs these steps\n" +
		"#\n" +
		"# RUN_FLAGS are flags for `" + program + " crd run`. If ETCD_FLAGS is set, `" + program + " crd verify` proves the migration with\n" +
		"# these flags, as in ETCD_FLAGS='--etcd-servers=https://127.0.0.1:2379 --etcd-cafile=ca.crt'.\n" +
		"#\n")
	for _, r := range all {
		for _, f := range r.steps.Findings {
			fmt.Fprintf(&text, "# %s: %s\n", f.Reason, quote.Line(f.Message))
		}
	}
	text.WriteString("set -eu\ncd \"$(dirname \"$0\")\"\n\n" +
		applyFunction(cluster) +
		"run() {\n  " + program + " crd run \"$@\" --yes" + cluster + " ${RUN_FLAGS:-}\n" +
		"  [ -z \"${ETCD_FLAGS:-}\" ] || " + program + " crd verify \"$@\"" + cluster + " $ETCD_FLAGS\n}\n\n")
	var steps []string
	for _, k := range bridge.Kinds {
		names := with(k)
		if len(names) == 0 {
			continue
		}
		step := strings.ToLower(string(k))
		steps = append(steps, step)
		var lines []string
		if k == bridge.Unconvert {
			lines = append(lines, patches(all, cluster)...)
		} else if k != bridge.Migrate {
			lines = append(lines, applies(all, k)...)
		}
		if k == bridge.Migrate || k == bridge.Unserve {
			lines = append(lines, "run "+strings.Join(names, " "))
		}
		fmt.Fprintf(&text, "%s() {\n  %s\n}\n\n", step, strings.Join(lines, "\n  "))
	}
	steps = append(steps, "check")
	fmt.Fprintf(&text, "check() {\n  %s crd check -f %s%s\n}\n\n", program, nextFolder, cluster)
	fmt.Fprintf(&text, "[ $# -gt 0 ] || set -- %s\nfor step in \"$@\"; do\n  case \"$step\" in\n  %s) echo \"step $step\"; \"$step\" ;;\n"+
		"  *) echo \"no step $step; there are: %s\" >&2; exit 2 ;;\n  esac\ndone\n",
		strings.Join(steps, " "), strings.Join(steps, "|"), strings.Join(steps, " "))
	return text.String()
}

// applyFunction is the function of the script that applies the manifest of a step. After the last step, or with the next release installed, a
// CRD has none of the versions that the steps remove. A manifest of an earlier step would serve them again, by then without a webhook.
func applyFunction(cluster string) string {
	return "# apply FOLDER CRD OLD... applies a manifest, unless the CRD has none of the old versions any more: the manifest would add them again.\n" +
		"apply() {\n  folder=$1 crd=$2\n  shift 2\n" +
		"  versions=\" $(kubectl get crd" + cluster + " \"$crd\" -o 'jsonpath={.spec.versions[*].name}') \"\n" +
		"  for old in \"$@\"; do\n    case \"$versions\" in *\" $old \"*)\n" +
		"      kubectl apply" + cluster + " --server-side --force-conflicts --field-manager=godwit-bridge -f \"$folder/$crd.yaml\"\n" +
		"      return ;;\n    esac\n  done\n" +
		"  echo \"customresourcedefinition $crd left unchanged: $* removed before\"\n}\n\n"
}

// applies are the commands of a step that applies manifests.
func applies(all []release, k bridge.Kind) []string {
	var lines []string
	for _, r := range all {
		if slices.ContainsFunc(r.steps.Steps, func(s bridge.Step) bool { return s.Kind == k }) {
			lines = append(lines, fmt.Sprintf("apply %s %s %s", folderOf(k), r.Name, strings.Join(r.steps.RemovedVersions, " ")))
		}
	}
	return lines
}

// patches are the commands of the steps that patch a CRD.
func patches(all []release, cluster string) []string {
	var lines []string
	for _, r := range all {
		for _, s := range r.steps.Steps {
			if p := s.Patch; p != nil {
				lines = append(lines, fmt.Sprintf("kubectl patch crd%s %s --type=%s --field-manager=godwit-bridge -p %s", cluster, r.Name, p.Type, quote.Shell(p.Body)))
			}
		}
	}
	return lines
}
