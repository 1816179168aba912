package markers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	isRoot  = "// +kubebuilder:object:root=true\n"
	migrate = "// +kubebuilder:metadata:labels=godwit.dev/auto-migrate-storage-version=true\n"
	exclude = "// +godwit:storage-version-migrator:exclude=objects live for a minute\n"
)

// tree writes files, by their names, and makes their folder the current one.
func tree(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// short is a finding without its words.
func short(findings []Finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, fmt.Sprintf("%s:%d %s %s", filepath.ToSlash(f.File), f.Line, f.Type, f.Reason))
	}
	return all
}

// fine is a root type that is in order, without which a check is an error.
const fine = isRoot + migrate + "type A struct{}\n"

func TestCheckReadsMarkersAsControllerGenDoes(t *testing.T) {
	label := "// +kubebuilder:metadata:labels"
	is := "godwit.dev/auto-migrate-storage-version=true"
	cases := map[string]struct {
		reason  string
		options Options
		types   string // line 1 is the package clause, line 2 empty
		want    []string
	}{
		"migrated":       {reason: "the usual case", types: fine},
		"excluded":       {reason: "the other one", types: isRoot + exclude + "type A struct{}\n"},
		"neither marker": {reason: "the line is the type's", types: isRoot + "type A struct{}\n", want: []string{"a.go:4 A Missing"}},
		"commented without a blank": {
			reason: "kubebuilder writes both forms",
			types:  strings.ReplaceAll(fine, "// +", "//+"),
		},
		"in another order, among text": {
			reason: "markers may stand anywhere in the documentation",
			types:  "// A is one.\n" + migrate + "// It is.\n//\n" + isRoot + "type A struct{}\n",
		},
		"a blank line before the documentation": {
			reason: "as kubebuilder scaffolds it",
			types:  isRoot + migrate + "\n// A is one.\ntype A struct{}\n",
		},
		"three blank lines and no documentation": {
			reason: "the next comment above is the type's, however far",
			types:  isRoot + migrate + "\n\n\ntype A struct{}\n",
		},
		"half above, half in the documentation": {
			reason: "both are the type's",
			types:  migrate + "\n// A is one.\n" + isRoot + "type A struct{}\n",
		},
		"a comment between": {
			reason: "only the next comment is the type's; the marker two above does nothing",
			types:  migrate + "\n// Types of the API.\n\n// A is one.\n" + isRoot + "type A struct{}\n",
			want:   []string{"a.go:3 A Lost"},
		},
		"a block comment": {
			reason: "controller-gen reads lines only",
			types:  isRoot + "/*\n +kubebuilder:metadata:labels=" + is + "\n*/\ntype A struct{}\n",
			want:   []string{"a.go:7 A Missing"},
		},
		"a comment at the end of the line before": {
			reason: "it belongs to what precedes it",
			types:  "type B struct{} " + migrate + isRoot + "type A struct{}\n",
			want:   []string{"a.go:5 A Missing"},
		},
		"a comment in the struct": {
			reason: "it belongs to the field",
			types:  isRoot + "type A struct {\n\t" + migrate + "\tB int\n}\n",
			want:   []string{"a.go:4 A Missing"},
		},
		"a comment in the function before": {
			reason: "it ends with the function",
			types:  "func f() {\n" + migrate + "}\n\n" + isRoot + "type A struct{}\n",
			want:   []string{"a.go:8 A Missing"},
		},
		"grouped types": {
			reason: "each has its own comments",
			types: "type (\n" + isRoot + migrate + "\n// A is one.\nA struct{}\n\n" + isRoot + "B struct{}\n\n" +
				exclude + "\n" + isRoot + "C struct{}\n)\n",
			want: []string{"a.go:11 B Missing"},
		},
		"markers above the parentheses": {
			reason: "they are the package's, and no type's",
			types:  fine + migrate + "type (\n" + isRoot + "B struct{}\n)\n",
			want:   []string{"a.go:9 B Missing"},
		},
		"root of other forms": {
			reason: "controller-gen drops what it does not know of a name",
			types:  "// +kubebuilder:object:root:=true\ntype A struct{}\n",
			want:   []string{"a.go:4 A Missing"},
		},
		"root=false": {
			reason: "the type is no root",
			types:  fine + "// +kubebuilder:object:root=false\ntype B struct{}\n",
		},
		"no struct": {
			reason: "only structs have CRDs",
			types:  fine + isRoot + "type B string\n" + isRoot + "type C = A\n",
		},
		"lists": {
			reason: "a list type has no CRD",
			types: fine + isRoot + "type AList struct {\n\tmetav1.TypeMeta\n\tmetav1.ListMeta\n\tItems []A\n}\n" +
				isRoot + "type BList struct{ Items []A }\n" + isRoot + "type Cs struct { ListMeta; Items []A }\n",
		},
		"no lists": {
			reason: "a name that ends so makes no list, nor does a field",
			types: isRoot + "type AllowList struct{}\n" +
				isRoot + "type DenyList struct {\n\tmetav1.ObjectMeta\n\tItems []string\n}\n" + isRoot + "type Cart struct{ Items []string }\n",
			want: []string{"a.go:4 AllowList Missing", "a.go:6 DenyList Missing", "a.go:11 Cart Missing"},
		},
		"several labels":        {reason: "braces", types: isRoot + label + "={a=b," + is + "}\ntype A struct{}\n"},
		"several quoted labels": {reason: "braces", types: isRoot + label + "={ \"a=b,c\" , `" + is + "` }\ntype A struct{}\n"},
		"semicolons":            {reason: "the older form", types: isRoot + label + "=a=b;" + is + ";c=d\ntype A struct{}\n"},
		"quoted":                {reason: "a string of Go", types: isRoot + label + "=\"" + is + "\"\ntype A struct{}\n"},
		"quoted, with semicolons": {
			reason: "each is a string of its own",
			types:  isRoot + label + "=\"a=b;c\";`" + is + "`\ntype A struct{}\n",
		},
		"annotations beside": {
			reason: "a comma separates the two",
			types:  isRoot + label + "=" + is + ",annotations=a=b;c=d\ntype A struct{}\n",
		},
		"annotations first": {
			reason: "in either order",
			types:  isRoot + "// +kubebuilder:metadata:annotations={a=b},labels=" + is + "\ntype A struct{}\n",
		},
		"only an annotation": {
			reason: "it is no label",
			types:  isRoot + "// +kubebuilder:metadata:annotations=" + is + "\ntype A struct{}\n",
			want:   []string{"a.go:5 A Missing"},
		},
		"a quotation around several": {
			reason: "it is one label whose value has a comma",
			types:  isRoot + label + "=\"" + is + ",a=b\"\ntype A struct{}\n",
			want:   []string{"a.go:4 A WrongValue"},
		},
		"a remark behind": {
			reason: "it becomes part of the value",
			types:  isRoot + label + "=" + is + " // as all of them\ntype A struct{}\n",
			want:   []string{"a.go:4 A WrongValue"},
		},
		"a letter too much":  {reason: "another value", types: isRoot + label + "=" + is + "e\ntype A struct{}\n", want: []string{"a.go:4 A WrongValue"}},
		"false":              {reason: "no way to exclude a type", types: isRoot + label + "=godwit.dev/auto-migrate-storage-version=false\ntype A struct{}\n", want: []string{"a.go:4 A WrongValue"}},
		"another key":        {reason: "a longer one", types: isRoot + label + "=x." + is + "\ntype A struct{}\n", want: []string{"a.go:5 A Missing"}},
		"single quotes":      {reason: "they are part of the key", types: isRoot + label + "='" + is + "'\ntype A struct{}\n", want: []string{"a.go:5 A Missing"}},
		"commas, no braces":  {reason: "what follows is taken for an argument", types: isRoot + label + "=" + is + ",a=b\ntype A struct{}\n", want: []string{"a.go:4 A Unreadable"}},
		"an open brace":      {reason: "controller-gen fails", types: isRoot + label + "={" + is + "\ntype A struct{}\n", want: []string{"a.go:4 A Unreadable"}},
		"an open quotation":  {reason: "controller-gen fails", types: isRoot + label + "=\"" + is + "\ntype A struct{}\n", want: []string{"a.go:4 A Unreadable"}},
		"a blank before ;":   {reason: "controller-gen makes key= of key=true", types: isRoot + label + "=" + is + " ;a=b\ntype A struct{}\n", want: []string{"a.go:4 A Unreadable"}},
		"labels= twice":      {reason: "the second replaces the first", types: isRoot + label + "=" + is + ",labels=a=b\ntype A struct{}\n", want: []string{"a.go:5 A Missing"}},
		"a label without =":  {reason: "controller-gen fails", types: isRoot + label + "=godwit.dev/auto-migrate-storage-version\ntype A struct{}\n", want: []string{"a.go:4 A Unreadable"}},
		"twice":              {reason: "one is enough", types: isRoot + migrate + migrate + "type A struct{}\n", want: []string{"a.go:5 A Duplicate"}},
		"excluded twice":     {reason: "which reason holds?", types: isRoot + exclude + exclude + "type A struct{}\n", want: []string{"a.go:5 A Duplicate"}},
		"both":               {reason: "one of them is wrong", types: isRoot + migrate + exclude + "type A struct{}\n", want: []string{"a.go:5 A Contradiction"}},
		"no reason":          {reason: "the next reader asks for it", types: isRoot + "// +godwit:storage-version-migrator:exclude\ntype A struct{}\n", want: []string{"a.go:4 A NoReason"}},
		"an empty reason":    {reason: "quoted or not", types: isRoot + "// +godwit:storage-version-migrator:exclude=\" \"\ntype A struct{}\n", want: []string{"a.go:4 A NoReason"}},
		"words without =":    {reason: "they might be a reason, and are not written as one", types: isRoot + "// +godwit:storage-version-migrator:exclude for now\ntype A struct{}\n", want: []string{"a.go:4 A NoReason"}},
		"no reason, allowed": {reason: "by option", options: Options{AllowNoReason: true}, types: isRoot + "// +godwit:storage-version-migrator:exclude\ntype A struct{}\n"},
		"another marker":     {reason: "the name is longer", types: isRoot + "// +godwit:storage-version-migrator:excluded=x\ntype A struct{}\n", want: []string{"a.go:5 A Missing"}},
		"other names": {
			reason:  "an operator that has had its own for long",
			options: Options{Label: "example.com/migrate=yes", Exclude: "+example:no"},
			types:   isRoot + label + "=example.com/migrate=yes\ntype A struct{}\n" + isRoot + "// +example:no=x\ntype B struct{}\n" + fine,
			want:    []string{"a.go:11 A Missing"},
		},
		"on a list": {
			reason: "it looks migrated and is not",
			types:  fine + isRoot + migrate + "type BList struct{ Items []A }\n",
			want:   []string{"a.go:7 BList NotRoot"},
		},
		"on a part": {
			reason: "only the root's markers count",
			types:  fine + exclude + "type B struct{}\n",
			want:   []string{"a.go:6 B NotRoot"},
		},
		"in the text about something else": {
			reason: "a comment in this package has a marker as an example",
			types:  fine + "// is it:\n//\n//\t+kubebuilder:metadata:labels=" + is + "\nconst is = 1\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree(t, map[string]string{"a.go": "package a\n\n" + tc.types})
			findings, err := Check(tc.options, ".")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, short(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%s", tc.reason, diff, tc.types)
			}
		})
	}
}

func TestOneVersionOfAKindIsEnough(t *testing.T) {
	group := "// +groupName=example.com\n"
	stores := isRoot + "// +kubebuilder:storageversion\n"
	cases := map[string]struct {
		reason string
		v1, v2 string // line 2 is the package clause
		want   []string
	}{
		"the stored one":          {"the label is the CRD's", isRoot + "type A struct{}\n", stores + migrate + "type A struct{}\n", nil},
		"the stored one excluded": {"the reason is the CRD's", isRoot + "type A struct{}\n", stores + exclude + "type A struct{}\n", nil},
		"both":                    {"nothing is wrong with saying it twice", fine, stores + migrate + "type A struct{}\n", nil},
		"none":                    {"one finding, where it is to be corrected", isRoot + "type A struct{}\n", stores + "type A struct{}\n", []string{"v2/a.go:5 A Missing"}},
		"only the old one":        {"the label would go with that version", fine, stores + "type A struct{}\n", []string{"v2/a.go:5 A Missing"}},
		"nothing stored":          {"which one counts can't be known", fine, isRoot + "type A struct{}\n", []string{"v2/a.go:4 A Missing"}},
		"another kind":            {"it is not the same CRD", isRoot + "type B struct{}\n", stores + migrate + "type A struct{}\n", []string{"v1/a.go:4 B Missing"}},
		"excluded and migrated":   {"the CRD gets the label", isRoot + exclude + "type A struct{}\n", stores + migrate + "type A struct{}\n", []string{"v1/a.go:4 A Contradiction"}},
		"migrated and excluded":   {"the CRD gets the label", fine, stores + exclude + "type A struct{}\n", []string{"v1/a.go:4 A Contradiction"}},
		"another value in the old one": {
			"controller-gen may choose either of the two labels",
			isRoot + "// +kubebuilder:metadata:labels=godwit.dev/auto-migrate-storage-version=no\ntype A struct{}\n", stores + migrate + "type A struct{}\n",
			[]string{"v1/a.go:4 A WrongValue"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree(t, map[string]string{
				"api/v1/a.go":   "// Package v1 is old.\npackage v1\n" + tc.v1,
				"api/v1/doc.go": group + "package v1\n",
				"api/v2/a.go":   group + "package v2\n" + tc.v2,
			})
			findings, err := Check(Options{}, "./api/...")
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, w := range tc.want {
				want = append(want, "api/"+w)
			}
			if diff := cmp.Diff(want, short(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	t.Run("of another group", func(t *testing.T) {
		tree(t, map[string]string{
			"a/v1/a.go": "// +groupName=one.example.com\npackage v1\n" + isRoot + "type A struct{}\n",
			"b/v1/a.go": group + "package v1\n" + stores + migrate + "type A struct{}\n",
			"c/v1/a.go": "package v1\n" + isRoot + "type A struct{}\n",
			"d/v1/a.go": "package v1\n" + stores + migrate + "type A struct{}\n",
		})
		findings, err := Check(Options{}, "./...")
		want := []string{"a/v1/a.go:4 A Missing", "c/v1/a.go:3 A Missing"}
		if diff := cmp.Diff(want, short(findings)); diff != "" || err != nil {
			t.Errorf("the same name in another group, or in an unknown one, is another kind; error %v (-want +got):\n%s", err, diff)
		}
	})
}

func TestWhichFilesAreRead(t *testing.T) {
	unmarked := isRoot + "type B struct{}\n"
	files := map[string]string{
		"api/a.go":              "package api\n" + fine,
		"api/generated.go":      "// Code generated by a generator. DO NOT EDIT.\n\npackage api\n" + unmarked,
		"api/tagged.go":         "//go:build windows && special\n\npackage api\n" + unmarked,
		"api/name_plan9.go":     "package api\n" + unmarked,
		"api/lines.go":          "package api\n//line other.go:100\n" + unmarked,
		"api/ignored.go":        "//go:build ignore\n\npackage main\n" + unmarked,
		"api/b_test.go":         "package api\n" + unmarked,
		"api/_hidden.go":        "package api\n" + unmarked,
		"api/.hidden.go":        "not Go",
		"api/text.txt":          "not Go",
		"api/v1/b.go":           "package v1\n" + unmarked,
		"api/testdata/b.go":     "package api\n" + unmarked,
		"api/vendor/b/b.go":     "package b\n" + unmarked,
		"api/_old/b.go":         "package old\n" + unmarked,
		"api/module/go.mod":     "module example.com/other\n",
		"api/module/b.go":       "package module\n" + unmarked,
		"api/module/v1/b.go":    "package v1\n" + unmarked,
		"broken/a.go":           "package broken\ntype A struct {\n",
		"empty/README.md":       "",
		"parts/a.go":            "package parts\ntype A struct{}\n",
		"parts/below/a_test.go": "package below\n",
		"sorted/a.go":           "package sorted\n" + exclude + "\n// Text.\n\n// B has two.\n" + isRoot + migrate + "// +kubebuilder:metadata:labels=godwit.dev/auto-migrate-storage-version=no\n" + migrate + "type B struct{}\n",
	}
	here := []string{"api/generated.go:5 B Missing", "api/lines.go:4 B Missing", "api/name_plan9.go:3 B Missing", "api/tagged.go:5 B Missing"}
	below := slices.Concat(here, []string{"api/v1/b.go:3 B Missing"})
	cases := map[string]struct {
		reason   string
		options  Options
		patterns []string
		want     []string
		wantErr  string
	}{
		"one folder":         {reason: "what controller-gen may read, with whatever tags", patterns: []string{"./api"}, want: here},
		"all below":          {reason: "as the go command counts", patterns: []string{"./api/..."}, want: below},
		"twice":              {reason: "each type is checked once", patterns: []string{"api/...", "./api", "./api/v1/"}, want: below},
		"named on purpose":   {reason: "a folder that ... leaves out can be named", patterns: []string{"api/testdata"}, want: []string{"api/testdata/b.go:3 B Missing"}},
		"below a module":     {reason: "its top is what was named", patterns: []string{"api/module/..."}, want: []string{"api/module/b.go:3 B Missing", "api/module/v1/b.go:3 B Missing"}},
		"in order":           {reason: "by line", patterns: []string{"sorted"}, want: []string{"sorted/a.go:9 B WrongValue", "sorted/a.go:10 B Duplicate"}},
		"no pattern":         {reason: "nothing is checked", wantErr: "./api/..."},
		"no such folder":     {reason: "a slip in the name", patterns: []string{"./api/...", "./apis/..."}, wantErr: "./apis/..."},
		"a file":             {reason: "packages are folders", patterns: []string{"api/a.go"}, wantErr: "not a folder"},
		"a prefix":           {reason: "the go command's api... would be more than it seems", patterns: []string{"api..."}, wantErr: "api/..."},
		"no Go files":        {reason: "nothing is checked", patterns: []string{"./empty/..."}, wantErr: "./empty/... has no Go files"},
		"only tests":         {reason: "nothing is checked", patterns: []string{"parts/below"}, wantErr: "parts/below has no Go files"},
		"no root types":      {reason: "a check of nothing must not pass, even beside another", patterns: []string{"./api", "./parts/..."}, wantErr: "./parts/... has no root types"},
		"broken":             {reason: "what can't be parsed can't be checked", patterns: []string{"broken"}, wantErr: "a.go:2:"},
		"a label without =":  {reason: "no type could be right", options: Options{Label: "migrate"}, patterns: []string{"api"}, wantErr: "key=value"},
		"a label of two":     {reason: "no type could be right", options: Options{Label: "a=b,c=d"}, patterns: []string{"api"}, wantErr: "key=value"},
		"a marker of spaces": {reason: "no type could be right", options: Options{Exclude: "do not"}, patterns: []string{"api"}, wantErr: "do not"},
		"a marker with =":    {reason: "it is a name", options: Options{Exclude: "a=b"}, patterns: []string{"api"}, wantErr: "a=b"},
		"a marker of nothing": {
			reason: "every marker would exclude", options: Options{Exclude: "+"}, patterns: []string{"api"}, wantErr: "exclude marker",
		},
	}
	tree(t, files)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			findings, err := Check(tc.options, tc.patterns...)
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("%s: error %v, want one that names %q", tc.reason, err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, short(findings)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	t.Run("the current folder and all below", func(t *testing.T) {
		t.Chdir("api")
		for _, pattern := range []string{"...", "./..."} {
			findings, err := Check(Options{}, pattern)
			if err != nil || len(findings) != len(below) || findings[0].File != "generated.go" {
				t.Errorf("%s: %v, error %v", pattern, short(findings), err)
			}
		}
	})
}

// recorder is a test that fails.
type recorder struct{ said []string }

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...) }

func TestRequireSaysWhatToAdd(t *testing.T) {
	tree(t, map[string]string{"v1/a.go": "package v1\n" + isRoot + "type Gizmo struct{}\n"})
	var r recorder
	Require(&r, Options{}, "./v1")
	Require(&r, Options{}, "./v2")
	want := []string{
		"v1/a.go:3: Gizmo: no marker says whether its objects are migrated: add " +
			"// +kubebuilder:metadata:labels=godwit.dev/auto-migrate-storage-version=true, or // +godwit:storage-version-migrator:exclude=<reason>",
		"read ./v2: stat v2: no such file or directory",
	}
	if diff := cmp.Diff(want, r.said); diff != "" {
		t.Errorf("a test's output is all its author gets (-want +got):\n%s", diff)
	}
	Require(t, Options{Label: "a=b", AllowNoReason: true}, writeRoot(t, "// +kubebuilder:metadata:labels=a=b\n"))
}

func writeRoot(t *testing.T, marker string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\n"+isRoot+marker+"type A struct{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// FuzzCheckFile checks that any file is checked or refused, and that a finding
// points into it.
func FuzzCheckFile(f *testing.F) {
	for _, text := range []string{
		fine, isRoot + "type A struct{}", "type (\n" + isRoot + "A struct{}\n)", "// +groupName=\"", "//go:build ignore",
		isRoot + "// +kubebuilder:metadata:labels={a=b,`c=d`},annotations=e=\"f;g\";h=i\ntype A struct{}",
		isRoot + exclude + "\n/* */ type A struct{ metav1.ListMeta } // +", "func f() {\n// +\n}\n//line x:1\n" + fine,
	} {
		f.Add("package a\n\n" + text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := readSource("a.go", text)
		if err != nil {
			return
		}
		r, err := Options{}.rules()
		if err != nil {
			t.Fatal(err)
		}
		var all []subject
		for _, d := range s.types {
			all = append(all, subject{declaration: d, file: "a.go", group: s.group})
		}
		for _, finding := range r.check(all) {
			if lines := 1 + strings.Count(text, "\n"); finding.Line < 1 || finding.Line > lines || finding.Type == "" {
				t.Errorf("%+v in a file of %d lines", finding, lines)
			}
		}
	})
}
