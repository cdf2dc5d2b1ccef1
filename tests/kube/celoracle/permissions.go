package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strings"

	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/library"
)

// Decides by the verb, and gives the whole question as its reason. tests/cel_oracle.c does the same.
type verbs struct{}

func (verbs) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	reason := fmt.Sprintf("%s %s %v %s %s %s %s %s %s %s", a.GetUser().GetName(), strings.Join(a.GetUser().GetGroups(), ","), a.IsResourceRequest(), a.GetVerb(), a.GetAPIGroup(), a.GetResource(),
		a.GetSubresource(), a.GetNamespace(), a.GetName(), a.GetPath())
	var err error
	if strings.Contains(a.GetVerb(), "e") {
		err = errors.New("cannot " + a.GetVerb())
	}
	if len(a.GetVerb())%2 == 0 {
		return authorizer.DecisionAllow, reason, err
	}
	return authorizer.DecisionNoOpinion, reason, err
}

type requested struct{}

func (requested) GetName() string      { return "web" }
func (requested) GetNamespace() string { return "shop" }
func (requested) GetResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}
func (requested) GetSubresource() string { return "scale" }

var alice = &user.DefaultInfo{Name: "alice", Groups: []string{"readers", "system:authenticated"}}
var permissions = map[string]ref.Val{"authorizer": library.NewAuthorizerVal(alice, verbs{}), "authorizer.requestResource": library.NewResourceAuthorizerVal(alice, verbs{}, requested{})}

// Expressions that ask for permissions.
var evaluatedPermissions = []string{
	`authorizer`, `authorizer.requestResource`, `type(authorizer)`, `authorizer == authorizer`, `dyn(authorizer) == 1`, `dyn(1) == authorizer`, `authorizer.requestResource != authorizer.requestResource`, `[authorizer].size()`, `optional.ofNonZeroValue(authorizer).hasValue()`, `string(dyn(authorizer))`, `dyn(authorizer).path`,
	`authorizer.path('/healthz').check('get').allowed()`, `authorizer.path('').check('get').allowed()`, `authorizer.path(' \t\u2003').check('get')`, `authorizer.path('\u200b').check('bark').reason()`, `authorizer.path(y).check(y).errored()`, `authorizer.path('/').check('ge').error()`, `authorizer.path('/').check('gt').error()`,
	`authorizer.group('apps').resource('deployments').check('list').reason()`, `authorizer.group('').resource('pods').subresource('log').namespace('a').name('b').check('get').reason()`, `authorizer.group('').resource(' ').check('a')`, `authorizer.group('a').resource('b').name('c').name('d').namespace('').check('x').reason()`,
	`authorizer.serviceAccount('shop', 'bot').group('').resource('secrets').check('list').reason()`, `authorizer.serviceAccount('shop', 'Bot')`, `authorizer.serviceAccount('Shop', 'bot')`, `authorizer.serviceAccount('', '')`, `authorizer.serviceAccount('a', 'b').serviceAccount('c', 'd').path('/x').check('y').reason()`,
	`authorizer.requestResource.check('delete').reason()`, `authorizer.requestResource.subresource('status').check('ab').allowed()`, `authorizer.requestResource.fieldSelector('a=b,c!=d').labelSelector('x in (a, b)').check('list').allowed()`, `authorizer.requestResource.fieldSelector('!!').labelSelector('').check('list').errored()`, `authorizer.requestResource.labelSelector(y)`,
	`authorizer.requestResource.check('a').allowed() || authorizer.requestResource.check('b').allowed() || authorizer.requestResource.check('c').allowed()`, `['a', 'bb', 'c'].exists(v, authorizer.requestResource.check(v).allowed())`, `authorizer.requestResource.check('aa').allowed() && authorizer.requestResource.check('bb').allowed() && authorizer.requestResource.check('cc').allowed()`,
	`dyn(authorizer).check('a')`, `dyn(authorizer).group(dyn(1))`, `dyn(authorizer.group('a')).check('a')`, `dyn(authorizer.requestResource).resource('a')`, `dyn(authorizer.requestResource.check('a')).check('a')`, `authorizer.requestResource.check('a').allowed() ? 1 : 2`, `authorizer.serviceAccount(dyn(x), 'b')`, `authorizer.path(x / 0 == 1 ? 'a' : 'b')`,
}

func randomPermission(r *rand.Rand) string {
	m := maker{r}
	name := func() string {
		return m.text(m.pick("a", "web", "apps", "", " ", "a.b", "A", "*", "\\u3000", "\\u2009\\u0085", "a/b", "x-y", m.anyText()))
	}
	text := "authorizer"
	for m.Intn(4) == 0 {
		text += ".serviceAccount(" + name() + ", " + name() + ")"
	}
	switch m.Intn(8) {
	case 0:
		text = "authorizer.requestResource"
	case 1, 2:
		text += ".path(" + name() + ")"
	case 3:
		text = "dyn(" + text + ")" + m.pick(".group(", ".path(", ".resource(", ".name(") + name() + ")"
	default:
		text += ".group(" + name() + ").resource(" + name() + ")"
	}
	if !strings.Contains(text, ".path(") || m.Intn(10) == 0 {
		for m.Intn(2) == 0 {
			text += m.pick(".subresource(", ".namespace(", ".name(", ".fieldSelector(", ".labelSelector(") + name() + ")"
		}
	}
	if m.Intn(10) == 0 {
		text = "dyn(" + text + ")"
	}
	text += ".check(" + m.text(m.pick("get", "list", "create", "bark", "", "*")) + ")" + m.pick(".allowed()", ".reason()", ".reason()", ".errored()", ".error()", "")
	if m.Intn(10) == 0 {
		text = "(" + text + m.pick(" == ", " != ") + "authorizer.requestResource.check('ab')" + m.pick(".allowed()", ".reason()", "") + ")"
	}
	return text
}
