/*
 * ValidatingAdmissionPolicy, MutatingAdmissionPolicy and their bindings. All expressions are
 * compiled, to find what is wrong with them.
 */
#include "kube/types/validate/cluster/matching.h"
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/rules.h"

#include <stdio.h>

enum { ANNOTATIONS_MAX = 20, EXPRESSION_BYTES_MAX = 5 * 1024 };

/* -- What is matched -- */

static const struct rule named_rules[] = {
    {"resourceNames", EACH, NAME(segment_valid), UNIQUE},
    {NULL, ALWAYS, PART(rule_admission_rule)},
};

/* Policy and selectors have defaults. */
static const struct rule match_rules[] = {
    {"matchPolicy", IF_SET, CHOICE("Equivalent,Exact")},
    {"namespaceSelector", ALWAYS, PART(rule_selector)},
    {"objectSelector", ALWAYS, PART(rule_selector)},
    {"resourceRules", EACH, ROWS(named_rules)},
    {"excludeResourceRules", EACH, ROWS(named_rules)},
};

/* Deletes are not mutated. */
static void check_mutated(struct check *c, const struct at *at, const struct json_node *match)
{
    const struct at *in = AT(AT(at, "resourceRules"), "operations");
    for (const struct json_node *rule = rule_first(rule_member(match, "resourceRules")); rule;
         rule = rule->next)
        for (const struct json_node *item = rule_first(rule_member(rule, "operations")); item;
             item = item->next)
            rule_choice(c, in, rule_text_of(c, item), "*,CONNECT,CREATE,UPDATE");
}

static void check_constraints(struct check *c, const struct at *at, const struct json_node *spec,
                              bool mutating)
{
    const struct json_node *match = rule_member(spec, "matchConstraints");
    if (!match) {
        bad_required(c, at, NULL);
        return;
    }
    rule_rows(c, at, match, match_rules);
    rule_one(c, at, match, "resourceRules", NEEDED, WHY(NULL));
    if (mutating)
        check_mutated(c, at, match);
}

/* -- Parameters -- */

static void check_api_version(struct check *c, const struct at *at, struct slice text)
{
    struct slice version = text, group = slice_cut(&version, '/');
    char why[320], reasons[NAME_ERROR_BYTES];
    if (slice_is(text, "/")) {
        group = version = SLICE_EMPTY;
    } else if (version.len && memchr(version.ptr, '/', version.len)) {
        snprintf(why, sizeof(why), "unexpected GroupVersion string: %.*s",
                 (int)size_min(text.len, 256), (const char *)text.ptr);
        bad_text(c, at, text, why);
        return;
    } else if (group.len == text.len) {
        version = group;
        group = SLICE_EMPTY;
    }
    if (group.len && !subdomain_valid(group, reasons))
        bad_joined(c, at, group, "", reasons);
    if (!version.len)
        bad_text(c, at, text, "version must be specified");
    else if (!dns_1035_valid(version, reasons))
        bad_joined(c, at, version, "", reasons);
}

static void check_param_kind(struct check *c, const struct at *at, const struct json_node *of)
{
    struct slice version = rule_text(c, of, "apiVersion"), kind = rule_text(c, of, "kind");
    char reasons[NAME_ERROR_BYTES];
    if (!version.len)
        bad_required(c, AT(at, "apiVersion"), NULL);
    else
        check_api_version(c, AT(at, "apiVersion"), version);
    if (!kind.len)
        bad_required(c, AT(at, "kind"), NULL);
    else if (!dns_1035_valid(rule_lower(c, kind), reasons))
        bad_joined(c, AT(at, "kind"), kind,
                   "may have mixed case, but should otherwise match: ", reasons);
}

static void check_param_ref(struct check *c, const struct at *at, const struct json_node *ref)
{
    static const char one[] = "name and selector are mutually exclusive";
    const struct json_node *selector = rule_member(ref, "selector");
    struct slice name = rule_text(c, ref, "name");
    if (name.len) {
        rule_name(c, AT(at, "name"), name, segment_valid);
        if (selector)
            bad_forbidden(c, AT(at, "name"), one);
    }
    rule_selector(c, AT(at, "selector"), selector);
    if (selector && name.len)
        bad_forbidden(c, AT(at, "selector"), one);
    if (!selector && !name.len)
        bad_required(c, at, "one of name or selector must be specified");
    rule_one(c, at, ref, "parameterNotFoundAction", NEEDED, CHOICE("Deny,Allow"));
}

/* -- Expressions -- */

static void report(struct check *c, const struct at *at, struct slice shown,
                   const struct kube_expression *expression)
{
    struct slice why = expression->error;
    char *text = why.len ? arena_alloc(c->arena, why.len + 1) : NULL;
    if (!why.len)
        return;
    if (!text) {
        c->errors->no_memory = true;
        return;
    }
    slice_copy((uint8_t *)text, why);
    text[why.len] = '\0';
    if (expression->is_internal)
        bad_internal(c, at, text);
    else
        bad_text(c, at, shown, text);
}

void rule_expression(struct check *c, const struct at *at, struct slice text, struct slice shown,
                     enum kube_expression_returns returns)
{
    struct kube_expression expression;
    if (!c->scope)
        return;
    if (kube_expression_compile(c->scope, text, returns, &expression) != ST_OK)
        c->errors->no_memory = true;
    else
        report(c, at, shown, &expression);
}

/* Conditions see no variables. */
static void check_conditions(struct check *c, const struct at *at, const struct json_node *list)
{
    struct kube_expression_scope *scope = c->scope;
    bool has_variables = scope && scope->has_variables;
    if (scope)
        scope->has_variables = false;
    rule_match_conditions(c, at, list);
    if (scope)
        scope->has_variables = has_variables;
}

static void declare(struct check *c, const struct at *at, struct slice name, struct slice text)
{
    struct kube_expression expression;
    if (!c->scope)
        return;
    if (kube_expression_declare(c->scope, name, text, &expression) != ST_OK)
        c->errors->no_memory = true;
    else
        report(c, at, text, &expression);
}

#define CEL_RESERVED                                                                           \
    "true,false,null,in,as,break,const,continue,else,for,function,if,import,let,loop,package," \
    "namespace,return,var,void,while"

static bool is_identifier(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        uint8_t ch = name.ptr[i], letter = ch | 0x20;
        bool digit = ch >= '0' && ch <= '9';
        if (ch != '_' && !(letter >= 'a' && letter <= 'z') && !(digit && i))
            return false;
    }
    return name.len && !rule_one_of(name, CEL_RESERVED);
}

static void check_variables(struct check *c, const struct at *at, const struct json_node *list)
{
    size_t i = 0;
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        struct slice name = rule_text(c, item, "name");
        if (!rule_trimmed(c, item, "name").len)
            bad_required(c, AT(AT_ITEM(at, i), "name"), "name is not specified");
        else if (!is_identifier(name))
            bad_text(c, AT(AT_ITEM(at, i), "name"), name, "must be a valid CEL identifier");
        if (!rule_trimmed(c, item, "expression").len)
            bad_required(c, AT(AT_ITEM(at, i), "expression"), "expression is not specified");
        else
            declare(c, AT(AT_ITEM(at, i), "expression"), name, rule_text(c, item, "expression"));
    }
}

static void check_given(struct check *c, const struct at *at, const struct json_node *of,
                        const char *name)
{
    if (rule_text(c, of, name).len && !rule_trimmed(c, of, name).len)
        bad_text(c, AT(at, name), rule_text(c, of, name), "must be non-empty if specified");
}

/* The authorizer is not for messages. */
static void check_message(struct check *c, const struct at *at, struct slice text)
{
    if (!c->scope)
        return;
    c->scope->has_authorizer = false;
    rule_expression(c, at, text, text, KUBE_RETURNS_STRING);
    c->scope->has_authorizer = true;
}

static void check_validation(struct check *c, const struct at *at, const struct json_node *item)
{
    struct slice message = rule_trimmed(c, item, "message");
    bool lines = message.len &&
                 (memchr(message.ptr, '\n', message.len) || memchr(message.ptr, '\r', message.len));
    struct slice expression = rule_text(c, item, "expression");
    if (!rule_trimmed(c, item, "expression").len)
        bad_required(c, AT(at, "expression"), "expression is not specified");
    else
        rule_expression(c, AT(at, "expression"), expression, expression, KUBE_RETURNS_BOOL);
    check_given(c, at, item, "messageExpression");
    if (rule_trimmed(c, item, "messageExpression").len)
        check_message(c, AT(at, "messageExpression"), rule_text(c, item, "messageExpression"));
    check_given(c, at, item, "message");
    if (lines)
        bad_text(c, AT(at, "message"), rule_text(c, item, "message"),
                 "must not contain line breaks");
    rule_one(c, at, item, "reason", IF_SET, CHOICE("Forbidden,Invalid,RequestEntityTooLarge"));
}

/* The key is part of an annotation "<name of the policy>/<key>". */
static void check_annotation(struct check *c, const struct at *at, const struct json_node *item,
                             struct slice policy)
{
    struct slice key = rule_text(c, item, "key"), value = rule_trimmed(c, item, "valueExpression");
    struct slice whole = SLICE_EMPTY;
    AUTO(buf_fini) struct buf text = {0};
    if (buf_append_format(&text, "%.*s/%.*s", SLICE_ARGS(policy), SLICE_ARGS(key)) != ST_OK ||
        arena_dup(c->arena, buf_slice(&text), &whole) != ST_OK)
        c->errors->no_memory = true;
    else if (policy.len)
        rule_name(c, AT(at, "key"), whole, label_key_valid);
    else
        bad_text(c, AT(at, "key"), key, "requires metadata.name be non-empty");
    if (!value.len)
        bad_required(c, AT(at, "valueExpression"), "valueExpression is not specified");
    else if (value.len > EXPRESSION_BYTES_MAX)
        bad_required(c, AT(at, "valueExpression"), "must not exceed 5120 bytes in length");
    else
        rule_expression(c, AT(at, "valueExpression"), value, rule_text(c, item, "valueExpression"),
                        KUBE_RETURNS_STRING_OR_NULL);
}

static void check_annotations(struct check *c, const struct at *at, const struct json_node *list,
                              struct slice policy)
{
    struct seen seen = {0};
    size_t i = 0;
    if (rule_count(list) > ANNOTATIONS_MAX)
        bad_node(c, at, list, "must not have more than 20 auditAnnotations");
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        struct slice key = rule_text(c, item, "key");
        check_annotation(c, AT_ITEM(at, i), item, policy);
        if (!seen_add(c, &seen, key))
            bad_repeat(c, AT(AT_ITEM(at, i), "key"), key);
    }
}

/* -- Policies -- */

static void check_policy(struct check *c, const struct at *at, const struct json_node *spec,
                         const struct json_node *was, bool mutating)
{
    static const struct rule rules[] = {
        {"failurePolicy", IF_SET, CHOICE("Fail,Ignore")},
        {"paramKind", IF_SET, PART(check_param_kind)},
    };
    bool keeps = was && rule_same_member(spec, was, "paramKind") &&
                 rule_same_member(spec, was, "matchConditions");
    rule_rows(c, at, spec, rules);
    check_constraints(c, AT(at, "matchConstraints"), spec, mutating);
    if (!keeps)
        check_conditions(c, AT(at, "matchConditions"), rule_member(spec, "matchConditions"));
    check_variables(c, AT(at, "variables"), rule_member(spec, "variables"));
}

void kube_validate_validating_policy(struct check *c, const struct json_node *object,
                                     const struct json_node *old)
{
    static const char none[] = "validations or auditAnnotations must contain at least one item";
    const struct json_node *spec = rule_member(object, "spec");
    const struct at *at = AT(NULL, "spec");
    struct slice name = rule_text(c, rule_member(object, "metadata"), "name");
    struct kube_expression_scope scope = {
        .arena = c->arena,
        .has_params = rule_member(spec, "paramKind"),
        .has_authorizer = true,
        .has_variables = rule_filled(spec, "variables"),
    };
    /* cppcheck-suppress autoVariables */
    c->scope = &scope; /* until the end of this function */
    check_policy(c, at, spec, rule_member(old, "spec"), false);
    if (!rule_filled(spec, "validations") && !rule_filled(spec, "auditAnnotations")) {
        bad_required(c, AT(at, "validations"), none);
        bad_required(c, AT(at, "auditAnnotations"), none);
    }
    rule_one(c, at, spec, "validations", EACH, PART(check_validation));
    check_annotations(c, AT(at, "auditAnnotations"), rule_member(spec, "auditAnnotations"), name);
    c->scope = NULL;
}

static void check_expression(struct check *c, const struct at *at, const struct json_node *of,
                             const char *when, enum kube_expression_returns returns)
{
    struct slice text = rule_trimmed(c, of, "expression");
    if (!of)
        bad_required(c, at, when);
    else if (!text.len)
        bad_required(c, AT(at, "expression"), NULL);
    if (!text.len || !c->scope)
        return;
    c->scope->has_patches = true;
    rule_expression(c, AT(at, "expression"), text, text, returns);
    c->scope->has_patches = false;
}

static void check_mutation(struct check *c, const struct at *at, const struct json_node *item)
{
    const struct json_node *patch = rule_member(item, "jsonPatch");
    const struct json_node *apply = rule_member(item, "applyConfiguration");
    struct slice type = rule_text(c, item, "patchType");
    if (!type.len) {
        bad_required(c, AT(at, "patchType"), NULL);
    } else if (slice_is(type, "JSONPatch")) {
        check_expression(c, AT(at, "jsonPatch"), patch,
                         "must be specified when patchType is JSONPatch", KUBE_RETURNS_PATCHES);
        if (apply)
            bad_text(c, AT(at, "applyConfiguration"), SLICE_LITERAL("{applyConfiguration}"),
                     "must not be specified when patchType is JSONPatch");
    } else if (slice_is(type, "ApplyConfiguration")) {
        check_expression(c, AT(at, "applyConfiguration"), apply,
                         "must be specified when patchType is ApplyConfiguration",
                         KUBE_RETURNS_OBJECT);
        if (patch)
            bad_text(c, AT(at, "jsonPatch"), SLICE_LITERAL("{jsonPatch}"),
                     "must not be specified when patchType is ApplyConfiguration");
    } else {
        bad_choice(c, AT(at, "patchType"), type, "ApplyConfiguration,JSONPatch");
    }
}

void kube_validate_mutating_policy(struct check *c, const struct json_node *object,
                                   const struct json_node *old)
{
    static const struct rule rules[] = {
        {"mutations", EACH_NEEDED, WHY("mutations must contain at least one item"),
         PART(check_mutation)},
        {"reinvocationPolicy", NEEDED, CHOICE("IfNeeded,Never")},
    };
    const struct json_node *spec = rule_member(object, "spec");
    const struct at *at = AT(NULL, "spec");
    struct kube_expression_scope scope = {
        .arena = c->arena,
        .has_params = rule_member(spec, "paramKind"),
        .has_authorizer = true,
        .has_variables = true,
    };
    /* cppcheck-suppress autoVariables */
    c->scope = &scope; /* until the end of this function */
    check_policy(c, at, spec, rule_member(old, "spec"), true);
    rule_rows(c, at, spec, rules);
    c->scope = NULL;
}

/* -- Bindings -- */

static const struct rule binding_rules[] = {
    {"policyName", NEEDED, NAME(subdomain_valid)},
    {"paramRef", IF_SET, PART(check_param_ref)},
    {"matchResources", ALWAYS, ROWS(match_rules)},
};

void kube_validate_validating_binding(struct check *c, const struct json_node *object,
                                      const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec");
    const struct at *at = AT(NULL, "spec");
    (void)old;
    rule_rows(c, at, spec, binding_rules);
    const struct at *in = AT(at, "validationActions");
    const struct json_node *list = rule_member(spec, "validationActions");
    rule_one(c, in, list, NULL, EACH, CHOICE("Audit,Deny,Warn"), UNIQUE);
    if (rule_list_has(c, list, "Deny") && rule_list_has(c, list, "Warn"))
        bad_node(c, in, list,
                 "must not contain both Deny and Warn (repeating the same validation failure "
                 "information in the API response and headers serves no purpose)");
    if (!rule_count(list))
        bad_required(c, in, "at least one validation action is required");
}

void kube_validate_mutating_binding(struct check *c, const struct json_node *object,
                                    const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec");
    const struct at *at = AT(NULL, "spec");
    (void)old;
    rule_rows(c, at, spec, binding_rules);
    check_mutated(c, AT(at, "matchResources"), rule_member(spec, "matchResources"));
}
