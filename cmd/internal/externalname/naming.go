package externalname

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/godwit-dev/godwit"
	"github.com/godwit-dev/godwit/cmd/internal/frame"
	"github.com/godwit-dev/godwit/externalname"
	"github.com/godwit-dev/godwit/externalname/fleet"
)

const (
	externalNameAnnotation = "crossplane.io/external-name"
	// expressionCost bounds one evaluation. The API server's bound for one rule of a CRD is the same.
	expressionCost = 10_000_000
	// former is the form of names that the expression would change.
	former = "Former"
)

// nameFlags are the flags with the expression.
type nameFlags struct {
	expression string
	maxBytes   frame.CountFlag
}

func (o *nameFlags) addTo(c *cobra.Command) {
	o.maxBytes = externalname.DefaultMaxBytes
	c.Flags().StringVar(&o.expression, "name", "", "`CEL` expression of the new name")
	_ = c.RegisterFlagCompletionFunc("name", cobra.NoFileCompletions)
	c.Flags().Var(&o.maxBytes, "max-bytes", "length of the longest name")
}

// nameHelp documents the expression.
const nameHelp = "--name is an expression in CEL, as in validation rules of a CRD. Its variables are object, name (the\n" +
	"current external name) and segments (the name split at slashes, without escapes). escape(TEXT)\n" +
	"makes a segment of a text. The functions of strings are those of the API server. A result that is\n" +
	"empty leaves the managed resource as it is. The expression must leave new names as they are.\n\n"

// naming compiles the expression.
func (o *nameFlags) naming() (fleet.Naming, error) {
	if o.expression == "" {
		return nil, frame.Usagef(`specify --name=CEL, such as --name='name.lowerAscii()'`)
	}
	program, err := compile("name", o.expression)
	if err != nil {
		return nil, err
	}
	limit := int(o.maxBytes)
	return func(ctx context.Context, object *unstructured.Unstructured) (fleet.Proposal, error) {
		return propose(ctx, program, object, limit)
	}, nil
}

// compile compiles the expression of a flag, whose result is a string.
func compile(flag, expression string) (cel.Program, error) {
	env, err := cel.NewEnv(
		cel.Variable("object", cel.DynType), cel.Variable("name", cel.StringType), cel.Variable("segments", cel.ListType(cel.StringType)),
		cel.Function("escape", cel.Overload("escape_string", []*cel.Type{cel.StringType}, cel.StringType, cel.UnaryBinding(escape))),
		ext.Strings(), ext.Lists(), ext.Encoders(), cel.OptionalTypes(),
	)
	if err != nil {
		return nil, fmt.Errorf("prepare the expression: %w", err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, frame.Usagef("invalid argument %q for \"--%s\": %s; the variables are object, name and segments", expression, flag, issuesText(issues))
	}
	if t := ast.OutputType(); !t.IsExactType(cel.StringType) && !t.IsExactType(cel.DynType) {
		return nil, frame.Usagef("invalid argument %q for \"--%s\": the result is of type %s, want string", expression, flag, t)
	}
	program, err := env.Program(ast, cel.CostLimit(expressionCost), cel.InterruptCheckFrequency(100))
	if err != nil {
		return nil, frame.Usagef("invalid argument %q for \"--%s\": %s", expression, flag, frame.OneLine(err))
	}
	return program, nil
}

// issuesText returns the errors of an expression without an excerpt and without a CEL container.
func issuesText(issues *cel.Issues) string {
	all := issues.Errors()
	parts := make([]string, len(all))
	for i, one := range all {
		message, _, _ := strings.Cut(one.Message, " (in container")
		parts[i] = fmt.Sprintf("%s at character %d", strings.Join(strings.Fields(message), " "), one.Location.Column()+1)
	}
	return strings.Join(parts, "; ")
}

// evaluate evaluates an expression for one managed resource. Its errors are about that one alone, unless the context has ended.
func evaluate(ctx context.Context, program cel.Program, object *unstructured.Unstructured) (string, error) {
	current := object.GetAnnotations()[externalNameAnnotation]
	result, _, err := program.ContextEval(ctx, map[string]any{"object": object.Object, "name": current, "segments": segments(current)})
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Errorf("the expression fails: %s", frame.OneLine(err))
	}
	text, ok := result.Value().(string)
	if !ok {
		return "", fmt.Errorf("the result of the expression is a %s, want a string", result.Type().TypeName())
	}
	return text, nil
}

// propose evaluates the expression for one managed resource.
func propose(ctx context.Context, program cel.Program, object *unstructured.Unstructured, limit int) (fleet.Proposal, error) {
	current := object.GetAnnotations()[externalNameAnnotation]
	text, err := evaluate(ctx, program, object)
	switch {
	case ctx.Err() != nil:
		return fleet.Proposal{}, context.Cause(ctx)
	case err != nil:
		return fleet.Proposal{Err: err}, nil //nolint:nilerr // the error is what the proposal says
	case text == "" || text == current:
		return fleet.Proposal{Name: current}, nil
	}
	if err := checkName(text, limit); err != nil {
		return fleet.Proposal{Err: err}, nil //nolint:nilerr // the error is what the proposal says
	}
	return fleet.Proposal{Name: text, Form: former}, nil
}

// segments splits a name, and decodes complete percent escapes.
func segments(name string) []string {
	all := strings.Split(name, "/")
	for i, one := range all {
		if text, err := url.PathUnescape(one); err == nil {
			all[i] = text
		}
	}
	return all
}

// escape writes a text as one segment.
func escape(value ref.Val) ref.Val {
	text, ok := value.Value().(string)
	if !ok {
		return types.MaybeNoSuchOverloadErr(value)
	}
	name, err := externalname.Text().MaxBytes(maxSegment).Format(text)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.String(name)
}

// maxSegment is longer than any name; the name as a whole has a limit.
const maxSegment = 64 << 10

// checkName refuses a text that no codec accepts as a name.
func checkName(name string, limit int) error {
	invalid := func(reason *godwit.Reason, expected string) error {
		return &externalname.InvalidError{Reason: reason, Expected: expected}
	}
	switch {
	case len(name) > limit:
		return invalid(externalname.ReasonTooLong, fmt.Sprintf("at most %d bytes", limit))
	case !utf8.ValidString(name):
		return invalid(externalname.ReasonNotUTF8, "UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return invalid(externalname.ReasonControlCharacter, "no control character")
	case strings.TrimSpace(name) != name:
		return invalid(externalname.ReasonBlank, "no space at the beginning and at the end")
	}
	return nil
}

var errNoNames = errors.New("no names are saved")
