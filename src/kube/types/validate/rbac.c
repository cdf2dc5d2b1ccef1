/* Roles and their bindings. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/rules.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"

/* -- Roles -- */

static void check_rule(struct check *c, const struct at *at, const struct json_node *rule,
                       bool namespaced)
{
    static const struct rule of_resources[] = {
        {"apiGroups", NEEDED, WHY("resource rules must supply at least one api group")},
        {"resources", NEEDED, WHY("resource rules must supply at least one resource")},
    };
    const struct json_node *urls = rule_filled(rule, "nonResourceURLs");
    rule_one(c, at, rule, "verbs", NEEDED, WHY("verbs must contain at least one value"));
    if (!urls) {
        rule_rows(c, at, rule, of_resources);
        return;
    }
    if (namespaced)
        bad_node(c, AT(at, "nonResourceURLs"), urls,
                 "namespaced rules cannot apply to non-resource URLs");
    if (rule_filled(rule, "apiGroups") || rule_filled(rule, "resources") ||
        rule_filled(rule, "resourceNames"))
        bad_node(c, AT(at, "nonResourceURLs"), urls,
                 "rules cannot apply to both regular resources and non-resource URLs");
}

static void check_rules(struct check *c, const struct json_node *object, bool namespaced)
{
    const struct at *at = AT(NULL, "rules");
    size_t i = 0;
    for (const struct json_node *rule = rule_first(rule_member(object, "rules")); rule;
         rule = rule->next)
        check_rule(c, AT_ITEM(at, i++), rule, namespaced);
}

void kube_validate_role(struct check *c, const struct json_node *object,
                        const struct json_node *old)
{
    (void)old;
    check_rules(c, object, true);
}

void kube_validate_cluster_role(struct check *c, const struct json_node *object,
                                const struct json_node *old)
{
    const struct json_node *rule = rule_member(object, "aggregationRule");
    const struct at *at = AT(AT(NULL, "aggregationRule"), "clusterRoleSelectors");
    size_t i = 0;
    (void)old;
    check_rules(c, object, false);
    if (!rule)
        return;
    if (!rule_filled(rule, "clusterRoleSelectors"))
        bad_required(c, at,
                     "at least one clusterRoleSelector required if aggregationRule is non-nil");
    for (const struct json_node *item = rule_first(rule_member(rule, "clusterRoleSelectors")); item;
         item = item->next, i++) {
        size_t before = c->errors->count;
        rule_selector(c, AT_ITEM(at, i), item);
        if (c->errors->count > before)
            bad_node(c, AT_ITEM(at, i), NULL, "invalid label selector.");
    }
}

/* -- Bindings -- */

static void check_subject(struct check *c, const struct at *at, const struct json_node *subject,
                          bool namespaced)
{
    struct slice kind = rule_text(c, subject, "kind"), group = rule_text(c, subject, "apiGroup");
    rule_one(c, at, subject, "name", NEEDED, WHY(NULL));
    if (slice_is(kind, "ServiceAccount")) {
        struct slice given = rule_text(c, subject, "apiGroup");
        rule_one(c, at, subject, "name", IF_SOME, NAME(subdomain_valid));
        if (given.len)
            bad_choice(c, AT(at, "apiGroup"), given, "");
        if (!namespaced && !rule_text(c, subject, "namespace").len)
            bad_required(c, AT(at, "namespace"), NULL);
    } else if (rule_one_of(kind, "User,Group")) {
        if (group.len) /* otherwise the default */
            rule_choice(c, AT(at, "apiGroup"), group, RBAC_GROUP);
    } else {
        bad_choice(c, AT(at, "kind"), kind, "ServiceAccount,User,Group");
    }
}

/* Kubernetes shows its internal type. */
static void bad_role(struct check *c, const struct at *at, const struct json_node *role)
{
    struct slice group = rule_text(c, role, "apiGroup"), kind = rule_text(c, role, "kind");
    struct slice name = rule_text(c, role, "name");
    AUTO(buf_fini) struct buf json = {0};
    if (buf_append_format(&json, "{\"APIGroup\":\"%.*s\",\"Kind\":\"%.*s\",\"Name\":\"%.*s\"}",
                          SLICE_ARGS(group), SLICE_ARGS(kind), SLICE_ARGS(name)) != ST_OK ||
        buf_append(&json, slice_of("", 1)) != ST_OK)
        c->errors->no_memory = true;
    else
        bad_raw(c, at, (const char *)json.ptr, "cannot change roleRef");
}

static void check_binding(struct check *c, const struct json_node *object,
                          const struct json_node *old, bool namespaced)
{
    const struct json_node *role = rule_member(object, "roleRef");
    const struct at *at = AT(NULL, "roleRef"), *list = AT(NULL, "subjects");
    const struct rule rules[] = {
        {"apiGroup", IF_SOME, CHOICE(RBAC_GROUP)},
        {"kind", ALWAYS, CHOICE(namespaced ? "Role,ClusterRole" : "ClusterRole")},
        {"name", NEEDED, NAME(segment_valid)},
    };
    size_t i = 0;
    rule_rows(c, at, role, rules);
    for (const struct json_node *item = rule_first(rule_member(object, "subjects")); item;
         item = item->next)
        check_subject(c, AT_ITEM(list, i++), item, namespaced);
    if (old && !rule_same_node(role, rule_member(old, "roleRef")))
        bad_role(c, at, role);
}

void kube_validate_role_binding(struct check *c, const struct json_node *object,
                                const struct json_node *old)
{
    check_binding(c, object, old, true);
}

void kube_validate_cluster_role_binding(struct check *c, const struct json_node *object,
                                        const struct json_node *old)
{
    check_binding(c, object, old, false);
}
