/* ValidatingWebhookConfiguration and MutatingWebhookConfiguration. */
#include "cel/library/go_url.h"
#include "cel/value/work.h"
#include "kube/types/go_text.h"
#include "kube/types/validate/cluster/matching.h"
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/rules.h"

#include <stdio.h>

enum { CONDITIONS_MAX = 64, TIMEOUT_SECONDS_MAX = 30, PORT_HTTPS = 443, SHOWN_MAX = 200 };
enum { CONDITIONS_BYTES_MAX = 64 << 20 }; /* the programs of one webhook's conditions */

/* What an update may keep, because the stored object has it already. */
struct kept {
    bool conditions, side_effects, versions, names, label_values;
};

/* -- Rules -- */

/* A list that must not be empty; "*" must be alone in it. */
static void check_all_or_some(struct check *c, const struct at *at, const struct json_node *list,
                              const char *what)
{
    char why[80];
    if (!rule_count(list))
        bad_required(c, at, NULL);
    snprintf(why, sizeof(why), "if '*' is present, must not specify other %s", what);
    if (rule_count(list) > 1 && rule_list_has(c, list, "*"))
        bad_node(c, at, list, why);
}

static void bad_covered(struct check *c, const struct at *at, struct slice all, const char *format,
                        struct slice resource)
{
    char why[2 * SHOWN_MAX + 80], pattern[SHOWN_MAX + 8];
    snprintf(pattern, sizeof(pattern), format, (int)size_min(all.len, SHOWN_MAX),
             (const char *)all.ptr);
    snprintf(why, sizeof(why), "if '%s' is present, must not specify %.*s", pattern,
             (int)size_min(resource.len, SHOWN_MAX), (const char *)resource.ptr);
    bad_text(c, at, resource, why);
}

struct resources {
    struct seen with_all_parts; /* resources that are given with all their subresources */
    struct seen in_all;         /* subresources that are given of all resources */
    bool all, everything, plain;
};

static void check_resource(struct check *c, const struct at *at, struct slice name,
                           struct resources *r)
{
    struct slice part = name, whole = slice_cut(&part, '/');
    if (!name.len) {
        bad_required(c, at, NULL);
        return;
    }
    r->everything = r->everything || slice_is(name, "*/*");
    r->all = r->all || slice_is(name, "*");
    if (whole.len == name.len) {
        r->plain = !slice_is(name, "*");
        return;
    }
    if (seen_has(&r->with_all_parts, whole))
        bad_covered(c, at, whole, "%.*s/*", name);
    if (seen_has(&r->in_all, part))
        bad_covered(c, at, part, "*/%.*s", name);
    if (slice_is(part, "*"))
        seen_add(c, &r->with_all_parts, whole);
    if (slice_is(whole, "*"))
        seen_add(c, &r->in_all, part);
}

static void check_resource_list(struct check *c, const struct at *at, const struct json_node *list)
{
    struct resources r = {0};
    size_t i = 0;
    if (!rule_count(list))
        bad_required(c, at, NULL);
    for (const struct json_node *item = rule_first(list); item; item = item->next)
        check_resource(c, AT_ITEM(at, i++), rule_text_of(c, item), &r);
    if (rule_count(list) > 1 && r.everything)
        bad_node(c, at, list, "if '*/*' is present, must not specify other resources");
    if (r.all && r.plain)
        bad_node(c, at, list,
                 "if '*' is present, must not specify other resources without subresources");
}

void rule_admission_rule(struct check *c, const struct at *at, const struct json_node *rule)
{
    static const struct rule version[] = {{NULL, NEEDED, WHY(NULL)}};
    static const struct rule rest[] = {
        {"apiVersions", EACH, ROWS(version)},
        {"resources", ALWAYS, PART(check_resource_list)},
        {"scope", IF_SET, CHOICE("*,Cluster,Namespaced")},
    };
    check_all_or_some(c, AT(at, "operations"), rule_member(rule, "operations"), "operations");
    rule_one(c, at, rule, "operations", EACH, CHOICE("*,CONNECT,CREATE,DELETE,UPDATE"));
    check_all_or_some(c, AT(at, "apiGroups"), rule_member(rule, "apiGroups"), "API groups");
    check_all_or_some(c, AT(at, "apiVersions"), rule_member(rule, "apiVersions"), "API versions");
    rule_rows(c, at, rule, rest);
}

/* -- Conditions -- */

void rule_match_conditions(struct check *c, const struct at *at, const struct json_node *list)
{
    struct seen seen = {0};
    size_t i = 0;
    if (rule_count(list) > CONDITIONS_MAX)
        bad_many(c, at, rule_count(list), CONDITIONS_MAX);
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        const struct at *in = AT_ITEM(at, i);
        struct slice name = rule_text(c, item, "name");
        struct slice expression = rule_trimmed(c, item, "expression");
        if (!expression.len)
            bad_required(c, AT(in, "expression"), NULL);
        else
            rule_expression(c, AT(in, "expression"), expression, expression, KUBE_RETURNS_BOOL);
        rule_one(c, in, item, "name", NEEDED, NAME(label_key_valid));
        if (name.len && !seen_add(c, &seen, name))
            bad_repeat(c, AT(in, "name"), name);
    }
}

/* Those of a webhook see no parameters. Their programs take many times their text, and are only
 * made to find errors. */
static void compile_conditions(struct check *c, const struct at *at, const struct json_node *list)
{
    struct arena arena;
    struct kube_expression_scope scope = {.arena = &arena, .has_authorizer = true};
    arena_init(&arena, NULL, 0, CONDITIONS_BYTES_MAX);
    arena_charge(&arena, c->arena->account);
    /* cppcheck-suppress autoVariables */
    c->scope = &scope; /* until the end of this function */
    rule_match_conditions(c, at, list);
    c->scope = NULL;
    arena_fini(&arena);
}

/* -- Clients -- */

#define URL_FORM "; desired format: https://host[/path]"

/* "name:password" in a valid URL that has one: it ends with the last @ of the host. */
static struct slice user_of(struct slice url)
{
    static const char ends[] = {'/', '?', '#'};
    const uint8_t *from = memmem(url.ptr, url.len, "//", 2), *end = url.ptr + url.len, *at;
    size_t len = 0;
    for (from += 2; from + len < end && !memchr(ends, from[len], sizeof(ends));)
        len++;
    at = memrchr(from, '@', len);
    return slice_of(from, (size_t)(at - from));
}

static void check_url(struct check *c, const struct at *at, struct slice text)
{
    struct cel_work work = {.arena = c->arena, .steps_left = INT64_MAX};
    struct go_url u;
    struct cel_value error;
    AUTO(buf_fini) struct buf whole = {0};
    if (!go_url_read(&work, text, false, &u, &error)) {
        struct slice why = cel_text(error);
        if (arena_ran_out(c->arena) ||
            buf_append_format(&whole, "url must be a valid URL: %.*s" URL_FORM,
                              (int)size_min(why.len, GO_SHOWN_BYTES_MAX), why.ptr) != ST_OK ||
            buf_append(&whole, slice_of("", 1)) != ST_OK)
            c->errors->no_memory = true;
        else
            bad_required(c, at, (const char *)whole.ptr);
        return;
    }
    if (!slice_is(u.scheme, "https"))
        bad_text(c, at, u.scheme, "'https' is the only allowed URL scheme" URL_FORM);
    if (!u.host.len)
        bad_text(c, at, u.host, "host must be specified" URL_FORM);
    if (u.has_user)
        bad_text(c, at, user_of(text), "user information is not permitted in the URL");
    if (u.fragment.len)
        bad_text(c, at, u.fragment, "fragments are not permitted in the URL");
    if (u.query.len)
        bad_text(c, at, u.query, "query parameters are not permitted in the URL");
}

static void check_step(struct check *c, const struct at *at, struct slice path, struct slice step,
                       size_t number)
{
    char why[NAME_ERROR_BYTES], before[64];
    if (!step.len) {
        snprintf(before, sizeof(before), "segment[%zu] may not be empty", number);
        bad_text(c, at, path, before);
        return;
    }
    snprintf(before, sizeof(before), "segment[%zu]: ", number);
    if (!subdomain_valid(step, why))
        bad_texts(c, at, path, before, why);
}

static void check_service_path(struct check *c, const struct at *at, struct slice path)
{
    if (!path.len || slice_is(path, "/"))
        return;
    if (slice_is(path, "//")) {
        bad_text(c, at, path, "segment[0] may not be empty");
        return;
    }
    if (path.ptr[0] != '/')
        bad_text(c, at, path, "must start with a '/'");
    struct slice rest = slice_sub(path, 1, path.len - 1);
    if (rest.len && rest.ptr[rest.len - 1] == '/')
        rest.len--;
    size_t steps = 1;
    for (size_t i = 0; i < rest.len; i++)
        steps += rest.ptr[i] == '/';
    for (size_t i = 0; i < steps; i++)
        check_step(c, at, path, slice_cut(&rest, '/'), i);
}

/* Kubernetes confuses name and namespace, but both are only required. */
static void check_service(struct check *c, const struct at *at, const struct json_node *service)
{
    int64_t port = rule_int(service, "port", PORT_HTTPS);
    if (!rule_text(c, service, "namespace").len)
        bad_required(c, AT(at, "name"), NULL);
    if (!rule_text(c, service, "name").len)
        bad_required(c, AT(at, "namespace"), NULL);
    if (port < 1 || port > UINT16_MAX)
        bad_int(c, AT(at, "port"), port,
                "port is not valid: must be between 1 and 65535, inclusive");
    check_service_path(c, AT(at, "path"), rule_text(c, service, "path"));
}

void rule_webhook_client(struct check *c, const struct at *at, const struct json_node *client)
{
    const struct json_node *url = rule_member(client, "url"),
                           *service = rule_member(client, "service");
    if (!url == !service)
        bad_required(c, at, "exactly one of url or service is required");
    else if (url)
        check_url(c, AT(at, "url"), rule_text_of(c, url));
    else
        check_service(c, AT(at, "service"), service);
}

/* -- Webhooks -- */

/* "a.b.c" */
static void check_qualified(struct check *c, const struct at *at, struct slice name)
{
    char why[NAME_ERROR_BYTES];
    size_t dots = 0;
    for (size_t i = 0; i < name.len; i++)
        dots += name.ptr[i] == '.';
    if (!name.len) {
        bad_required(c, at, NULL);
    } else if (!subdomain_valid(name, why)) {
        bad_joined(c, at, name, "", why);
    } else if (dots < 2) {
        bad_text(c, at, name, "should be a domain with at least three segments separated by dots");
    }
}

void rule_review_versions(struct check *c, const struct at *at, const struct json_node *list,
                          bool keeps, const char *detail)
{
    bool known = rule_list_has(c, list, "v1") || rule_list_has(c, list, "v1beta1");
    struct seen seen = {0};
    size_t i = 0;
    if (!rule_count(list)) {
        bad_required(c, at, detail);
        return;
    }
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        if (!seen_add(c, &seen, rule_text_of(c, item)))
            bad_text(c, AT_ITEM(at, i), rule_text_of(c, item), "duplicate version");
        else
            rule_name(c, AT_ITEM(at, i), rule_text_of(c, item), dns_1035_valid);
    }
    if (!known && !keeps)
        bad_node(c, at, list, "must include at least one of v1, v1beta1");
}

static void check_hook(struct check *c, const struct at *at, const struct json_node *hook,
                       const struct kept *keeps, bool mutating)
{
    int64_t timeout = rule_int(hook, "timeoutSeconds", TIMEOUT_SECONDS_MAX);
    check_qualified(c, AT(at, "name"), rule_text(c, hook, "name"));
    rule_one(c, at, hook, "rules", EACH, PART(rule_admission_rule));
    rule_one(c, at, hook, "failurePolicy", IF_SET, CHOICE("Fail,Ignore"));
    rule_one(c, at, hook, "matchPolicy", IF_SET, CHOICE("Equivalent,Exact"));
    const struct at *in = AT(at, "sideEffects");
    const struct json_node *effects = rule_member(hook, "sideEffects");
    const char *values =
        keeps->side_effects ? "None,NoneOnDryRun,Some,Unknown" : "None,NoneOnDryRun";
    if (effects)
        rule_choice(c, in, rule_text_of(c, effects), values);
    else
        bad_required(c, in,
                     keeps->side_effects ? "must specify one of None, NoneOnDryRun, Some, Unknown"
                                         : "must specify one of None, NoneOnDryRun");
    if (timeout < 1 || timeout > TIMEOUT_SECONDS_MAX)
        bad_int(c, AT(at, "timeoutSeconds"), timeout,
                "the timeout value must be between 1 and 30 seconds");
    c->any_label_values = keeps->label_values;
    rule_selector(c, AT(at, "namespaceSelector"), rule_member(hook, "namespaceSelector"));
    rule_selector(c, AT(at, "objectSelector"), rule_member(hook, "objectSelector"));
    c->any_label_values = false;
    if (mutating && rule_member(hook, "reinvocationPolicy"))
        rule_choice(c, AT(at, "reinvocationPolicy"), rule_text(c, hook, "reinvocationPolicy"),
                    "IfNeeded,Never");
    rule_webhook_client(c, AT(at, "clientConfig"), rule_member(hook, "clientConfig"));
    if (!keeps->conditions && rule_member(hook, "matchConditions"))
        compile_conditions(c, AT(at, "matchConditions"), rule_member(hook, "matchConditions"));
}

static bool same_conditions(const struct json_node *a, const struct json_node *b)
{
    const struct json_node *x = rule_first(a), *y = rule_first(b);
    while (x && y && rule_same_member(x, y, "matchConditions"))
        x = x->next, y = y->next;
    return !x && !y;
}

static struct kept kept_of(struct check *c, const struct json_node *hooks,
                           const struct json_node *old)
{
    struct kept keeps = {.conditions = same_conditions(hooks, old)};
    struct seen names = {0};
    for (const struct json_node *hook = rule_first(old); hook; hook = hook->next) {
        const struct json_node *versions = rule_filled(hook, "admissionReviewVersions");
        keeps.side_effects = keeps.side_effects ||
                             !rule_one_of(rule_text(c, hook, "sideEffects"), "None,NoneOnDryRun");
        keeps.versions = keeps.versions || (versions && !rule_list_has(c, versions, "v1") &&
                                            !rule_list_has(c, versions, "v1beta1"));
        keeps.names = keeps.names || !seen_add(c, &names, rule_text(c, hook, "name"));
        keeps.label_values = keeps.label_values ||
                             !rule_selector_is_valid(c, rule_member(hook, "namespaceSelector")) ||
                             !rule_selector_is_valid(c, rule_member(hook, "objectSelector"));
    }
    return keeps;
}

static void check_hooks(struct check *c, const struct json_node *object,
                        const struct json_node *old, bool mutating)
{
    const struct json_node *hooks = rule_member(object, "webhooks");
    const struct at *at = AT(NULL, "webhooks");
    struct kept keeps = {0};
    struct seen names = {0};
    size_t i = 0;
    if (old)
        keeps = kept_of(c, hooks, rule_member(old, "webhooks"));
    for (const struct json_node *hook = rule_first(hooks); hook; hook = hook->next, i++) {
        const struct at *in = AT_ITEM(at, i);
        struct slice name = rule_text(c, hook, "name");
        check_hook(c, in, hook, &keeps, mutating);
        rule_review_versions(c, AT(in, "admissionReviewVersions"),
                             rule_member(hook, "admissionReviewVersions"), keeps.versions,
                             "must specify one of v1, v1beta1");
        if (name.len && !keeps.names && !seen_add(c, &names, name))
            bad_repeat(c, AT(in, "name"), name);
    }
}

void kube_validate_validating_webhooks(struct check *c, const struct json_node *object,
                                       const struct json_node *old)
{
    check_hooks(c, object, old, false);
}

void kube_validate_mutating_webhooks(struct check *c, const struct json_node *object,
                                     const struct json_node *old)
{
    check_hooks(c, object, old, true);
}
