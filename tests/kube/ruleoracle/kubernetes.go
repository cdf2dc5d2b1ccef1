package main

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/warning"
)

var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}()

// The definition of a resource with this schema, as a user writes it.
func definition(root *schema, plural, kind string) *v1.CustomResourceDefinition {
	return &v1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"},
		Spec: v1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: v1.NamespaceScoped,
			Names: v1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []v1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &v1.CustomResourceValidation{OpenAPIV3Schema: root}}},
		},
	}
}

// The type of self has the time in its name.
var selfType = regexp.MustCompile(`selfType\d+`)

func texts2(errs field.ErrorList) []string {
	found := []string{}
	for _, err := range errs {
		found = append(found, selfType.ReplaceAllString(err.Error(), "selfType"))
	}
	slices.Sort(found)
	return found
}

func internalOf(written *v1.CustomResourceDefinition) *apiextensions.CustomResourceDefinition {
	written = written.DeepCopy()
	scheme.Default(written)
	internal := &apiextensions.CustomResourceDefinition{}
	must(scheme.Convert(written, internal, nil))
	internal.Status = apiextensions.CustomResourceDefinitionStatus{}
	for _, version := range internal.Spec.Versions {
		if version.Storage {
			internal.Status.StoredVersions = []string{version.Name}
		}
	}
	return internal
}

// What a rule, or its messageExpression, may cost for all values of an object.
type cost struct {
	Field string `json:"field"`
	Cost  uint64 `json:"cost"`
	Wrong bool   `json:"wrong"`
}

func product(a, b uint64) uint64 {
	if a != 0 && math.MaxUint64/a < b {
		return math.MaxUint64
	}
	return a * b
}

var environments = environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())

// The costs of the rules of a schema and of those below it.
func costsOf(s *apiextensions.JSONSchemaProps, context *validation.CELSchemaContext, path *field.Path, to *[]cost) {
	if len(s.XValidations) > 0 {
		info, err := context.TypeInfo()
		must(err)
		results, err := cel.Compile(info.Schema, info.DeclType, celconfig.PerCallLimit, environments, cel.NewExpressionsEnvLoader())
		must(err)
		for i, result := range results {
			times := result.MaxCardinality
			if context.MaxCardinality != nil {
				times = *context.MaxCardinality
			}
			at := path.Child("x-kubernetes-validations").Index(i)
			*to = append(*to, cost{at.Child("rule").String(), product(result.MaxCost, times), result.Error != nil})
			if result.MessageExpression != nil || result.MessageExpressionError != nil {
				*to = append(*to, cost{at.Child("messageExpression").String(), result.MessageExpressionMaxCost, result.MessageExpressionError != nil})
			}
		}
	}
	for _, name := range sorted(s.Properties) {
		property := s.Properties[name]
		costsOf(&property, context.ChildPropertyContext(&property, name), path.Child("properties").Key(name), to)
	}
	if s.Items != nil {
		costsOf(s.Items.Schema, context.ChildItemsContext(s.Items.Schema), path.Child("items"), to)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		below := s.AdditionalProperties.Schema
		costsOf(below, context.ChildAdditionalPropertiesContext(below), path.Child("additionalProperties"), to)
	}
}

// What Kubernetes says about a definition. Costs are only known if the schema has no errors besides those of rules.
func judgeDefinition(written *v1.CustomResourceDefinition) (errors []string, costs []cost) {
	internal := internalOf(written)
	errors = texts2(validation.ValidateCustomResourceDefinition(context.Background(), internal))
	add := func(of *apiextensions.CustomResourceValidation, path *field.Path) {
		if of != nil && of.OpenAPIV3Schema != nil {
			costsOf(of.OpenAPIV3Schema, validation.RootCELContext(of.OpenAPIV3Schema), path.Child("openAPIV3Schema"), &costs)
		}
	}
	add(internal.Spec.Validation, field.NewPath("spec", "validation"))
	for i, version := range internal.Spec.Versions {
		add(version.Schema, field.NewPath("spec", "versions").Index(i).Child("schema"))
	}
	slices.SortFunc(costs, func(a, b cost) int { return strings.Compare(a.Field, b.Field) })
	return errors, costs
}

type warnings struct {
	sync.Mutex
	texts []string
}

func (w *warnings) AddWarning(agent, text string) {
	w.Lock()
	defer w.Unlock()
	w.texts = append(w.texts, text)
}

// The answer to an object.
type verdict struct {
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
	Left     int64    `json:"left"`
}

type judge struct {
	schema    *structural.Structural
	validator *cel.Validator
}

func newJudge(root *schema, callMax uint64) *judge {
	internal := apiextensions.JSONSchemaProps{}
	must(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(root, &internal, nil))
	s, err := structural.NewStructural(&internal)
	must(err)
	return &judge{s, cel.NewValidator(s, true, callMax)}
}

func (j *judge) judge(object, old any, budget int64) verdict {
	seen := &warnings{texts: []string{}}
	options := []cel.Option{}
	if old != nil {
		options = append(options, cel.WithRatcheting(common.NewCorrelatedObject(object, old, &model.Structural{Structural: j.schema})))
	}
	errs, left := j.validator.Validate(warning.WithWarningRecorder(context.Background(), seen), nil, j.schema, object, old, budget, options...)
	slices.Sort(seen.texts)
	return verdict{texts2(errs), seen.texts, left}
}

func (v verdict) equals(other verdict) bool {
	return slices.Equal(v.Errors, other.Errors) && slices.Equal(v.Warnings, other.Warnings) &&
		(v.Left == other.Left || v.Left < 0 && other.Left < 0)
}

func (v verdict) String() string {
	return fmt.Sprintf("errors %q, warnings %q, %d left", v.Errors, v.Warnings, v.Left)
}
