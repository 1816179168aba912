package externalname

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/externalname/fleet"
)

// mapFlags are the flags that map managed resources to their replacements of another kind.
type mapFlags struct {
	pairs       []string
	toNamespace string
	toName      string

	originals    []string          // CRDs, in the order of --map
	replacements map[string]string // CRDs, by the CRD of their originals
	namespace    cel.Program
	name         cel.Program
}

// mapHelp documents the flags.
const mapHelp = "--map names the CRD of the replacements of a CRD, such as the namespaced kind of a provider for Crossplane\n" +
	"v2: then a restore hands each external resource over to the replacement. --to-namespace is the replacement's\n" +
	"namespace, an expression in CEL whose variables are object, name (the external name) and segments.\n" +
	"--to-name is its name. By default both are those of the managed resource.\n\n"

func (o *mapFlags) addTo(c *cobra.Command) {
	flags := c.Flags()
	flags.StringArrayVar(&o.pairs, "map", nil, "the `CRD=CRD` of managed resources and of their replacements, as in buckets.s3.example.org=buckets.s3.m.example.org; repeat the flag for several")
	flags.StringVar(&o.toNamespace, "to-namespace", "", "`CEL` expression of the replacement's namespace, as in 'object.metadata.labels[\"crossplane.io/claim-namespace\"]'")
	flags.StringVar(&o.toName, "to-name", "object.metadata.name", "`CEL` expression of the replacement's name")
	for _, flag := range []string{"map", "to-namespace", "to-name"} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
}

func (o *mapFlags) parse() (err error) {
	if len(o.pairs) == 0 {
		if o.toNamespace != "" {
			return frame.Usagef("specify --map=CRD=CRD with --to-namespace")
		}
		return nil
	}
	o.replacements = map[string]string{}
	for _, pair := range o.pairs {
		from, to, _ := strings.Cut(pair, "=")
		if !strings.Contains(from, ".") || !strings.Contains(to, ".") || strings.Contains(to, "=") {
			return frame.Usagef("invalid argument %q for \"--map\": write it as CRD=CRD, such as buckets.s3.example.org=buckets.s3.m.example.org", pair)
		}
		switch other, has := o.replacements[from]; {
		case has && other != to:
			return frame.Usagef("invalid argument %q for \"--map\": %s has the replacement %s, too", pair, from, other)
		case !has:
			o.originals = append(o.originals, from)
			o.replacements[from] = to
		}
	}
	if o.toNamespace != "" {
		if o.namespace, err = compile("to-namespace", o.toNamespace); err != nil {
			return err
		}
	}
	o.name, err = compile("to-name", o.toName)
	return err
}

// mapping returns the replacements of the managed resources of a CRD; nil without --map for it.
func (o *mapFlags) mapping(resource string) fleet.Mapping {
	replacement, has := o.replacements[resource]
	if !has {
		return nil
	}
	return func(ctx context.Context, object *unstructured.Unstructured) (fleet.Replacement, error) {
		s := fleet.Replacement{Resource: replacement, Namespace: object.GetNamespace()}
		var err error
		if o.namespace != nil {
			if s.Namespace, err = evaluate(ctx, o.namespace, object); err != nil {
				return s, fmt.Errorf("--to-namespace: %w", err)
			}
			if wrong := validation.IsDNS1123Label(s.Namespace); s.Namespace != "" && len(wrong) > 0 {
				return s, fmt.Errorf("--to-namespace gives %q: %s", s.Namespace, wrong[0])
			}
		}
		if s.Name, err = evaluate(ctx, o.name, object); err != nil {
			return s, fmt.Errorf("--to-name: %w", err)
		}
		if wrong := validation.IsDNS1123Subdomain(s.Name); len(wrong) > 0 {
			return s, fmt.Errorf("--to-name gives %q: %s", s.Name, wrong[0])
		}
		if s == (fleet.Replacement{Resource: resource, Namespace: object.GetNamespace(), Name: object.GetName()}) {
			return s, errors.New("it would be its own replacement")
		}
		return s, nil
	}
}
