/* FlowSchema and PriorityLevelConfiguration. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/rules.h"
#include "kube/types/validate/shown.h"

#include <stdio.h>

#define VERBS "create,delete,deletecollection,get,list,patch,proxy,update,watch"

enum {
    PRECEDENCE_MAX = 10000,
    QUEUES_MAX = 10000000,
    ENTROPY_BITS_MAX = 60,
};

/* -- Objects that every server has -- */

SHOWN_TYPE(name_only, SHOWN_TEXT("Name", "name"));
SHOWN_TYPE(account_type, SHOWN_TEXT("Namespace", "namespace"), SHOWN_TEXT("Name", "name"));
SHOWN_TYPE(subject_type, SHOWN_TEXT("Kind", "kind"), SHOWN_OF("User", "user", &name_only),
           SHOWN_OF("Group", "group", &name_only),
           SHOWN_OF("ServiceAccount", "serviceAccount", &account_type));
SHOWN_TYPE(resource_rule_type, SHOWN_NULL("Verbs", "verbs"), SHOWN_NULL("APIGroups", "apiGroups"),
           SHOWN_NULL("Resources", "resources"), {"ClusterScope", "clusterScope", "false", NULL},
           SHOWN_NULL("Namespaces", "namespaces"));
SHOWN_TYPE(url_rule_type, SHOWN_NULL("Verbs", "verbs"),
           SHOWN_NULL("NonResourceURLs", "nonResourceURLs"));
SHOWN_TYPE(rule_type, SHOWN_OF("Subjects", "subjects", &subject_type),
           SHOWN_OF("ResourceRules", "resourceRules", &resource_rule_type),
           SHOWN_OF("NonResourceRules", "nonResourceRules", &url_rule_type));
SHOWN_TYPE(method_type, SHOWN_TEXT("Type", "type"));
SHOWN_TYPE(schema_type,
           {"PriorityLevelConfiguration", "priorityLevelConfiguration", "{\"Name\":\"\"}",
            &name_only},
           {"MatchingPrecedence", "matchingPrecedence", "0", NULL},
           SHOWN_OF("DistinguisherMethod", "distinguisherMethod", &method_type),
           SHOWN_OF("Rules", "rules", &rule_type));

SHOWN_TYPE(queuing_type, {"Queues", "queues", "0", NULL}, {"HandSize", "handSize", "0", NULL},
           {"QueueLengthLimit", "queueLengthLimit", "0", NULL});
SHOWN_TYPE(response_type, SHOWN_TEXT("Type", "type"),
           SHOWN_OF("Queuing", "queuing", &queuing_type));
SHOWN_TYPE(limited_type, {"NominalConcurrencyShares", "nominalConcurrencyShares", "0", NULL},
           {"LimitResponse", "limitResponse", "{\"Type\":\"\",\"Queuing\":null}", &response_type},
           SHOWN_NULL("LendablePercent", "lendablePercent"),
           SHOWN_NULL("BorrowingLimitPercent", "borrowingLimitPercent"));
SHOWN_TYPE(exempt_type, SHOWN_NULL("NominalConcurrencyShares", "nominalConcurrencyShares"),
           SHOWN_NULL("LendablePercent", "lendablePercent"));
SHOWN_TYPE(level_type, SHOWN_TEXT("Type", "type"), SHOWN_OF("Limited", "limited", &limited_type),
           SHOWN_OF("Exempt", "exempt", &exempt_type));

#define ALL_RULES                                                                              \
    "\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"],"       \
    "\"clusterScope\":true,\"namespaces\":[\"*\"]}],\"nonResourceRules\":[{\"verbs\":[\"*\"]," \
    "\"nonResourceURLs\":[\"*\"]}]"

static const char exempt_schema[] =
    "{\"priorityLevelConfiguration\":{\"name\":\"exempt\"},\"matchingPrecedence\":1,\"rules\":[{"
    "\"subjects\":[{\"kind\":\"Group\",\"group\":{\"name\":\"system:masters\"}}]," ALL_RULES "}]}";
static const char catch_all_schema[] =
    "{\"priorityLevelConfiguration\":{\"name\":\"catch-all\"},\"matchingPrecedence\":10000,"
    "\"distinguisherMethod\":{\"type\":\"ByUser\"},\"rules\":[{\"subjects\":[{\"kind\":\"Group\","
    "\"group\":{\"name\":\"system:unauthenticated\"}},{\"kind\":\"Group\",\"group\":{\"name\":"
    "\"system:authenticated\"}}]," ALL_RULES "}]}";
static const char catch_all_level[] =
    "{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":5,\"limitResponse\":{\"type\":"
    "\"Reject\"},\"lendablePercent\":0}}";

static bool equals(struct check *c, const struct json_node *spec, const char *fixed)
{
    struct json_node *tree = NULL;
    struct error error = {0};
    if (json_tree_read(c->arena, slice_from_text(fixed), &tree, &error) != ST_OK) {
        /* The text is a constant and valid JSON, so only memory can be lacking. */
        c->errors->no_memory = true;
        return true;
    }
    return rule_same_node(spec, tree);
}

/* -- Schemas -- */

static void check_user(struct check *c, const struct at *at, const struct json_node *of,
                       const char *detail)
{
    if (!of)
        bad_required(c, at, detail);
    else if (!rule_text(c, of, "name").len)
        bad_required(c, AT(at, "name"), NULL);
}

static void check_account(struct check *c, const struct at *at, const struct json_node *of)
{
    struct slice name = rule_text(c, of, "name");
    if (!of) {
        bad_required(c, at, "serviceAccount is required when subject kind is 'ServiceAccount'");
        return;
    }
    if (!name.len)
        bad_required(c, AT(at, "name"), NULL);
    else if (!slice_is(name, "*"))
        rule_name(c, AT(at, "name"), name, subdomain_valid);
    rule_one(c, at, of, "namespace", NEEDED, WHY("must specify namespace for service account"),
             NAME(dns_label_valid));
}

static void check_subject(struct check *c, const struct at *at, const struct json_node *subject)
{
    static const struct {
        const char *kind, *name, *other;
    } kinds[] = {{"ServiceAccount", "serviceAccount",
                  "serviceAccount is forbidden when subject kind is not 'ServiceAccount'"},
                 {"User", "user", "user is forbidden when subject kind is not 'User'"},
                 {"Group", "group", "group is forbidden when subject kind is not 'Group'"}};
    struct slice kind = rule_text(c, subject, "kind");
    if (!rule_one_of(kind, "Group,ServiceAccount,User")) {
        bad_choice(c, AT(at, "kind"), kind, "Group,ServiceAccount,User");
        return;
    }
    if (slice_is(kind, "ServiceAccount"))
        check_account(c, AT(at, "serviceAccount"), rule_member(subject, "serviceAccount"));
    else if (slice_is(kind, "User"))
        check_user(c, AT(at, "user"), rule_member(subject, "user"),
                   "user is required when subject kind is 'User'");
    else
        check_user(c, AT(at, "group"), rule_member(subject, "group"),
                   "group is required when subject kind is 'Group'");
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (!slice_is(kind, kinds[i].kind) && rule_member(subject, kinds[i].name))
            bad_forbidden(c, AT(at, kinds[i].name), kinds[i].other);
    }
}

static void check_verbs(struct check *c, const struct at *at, const struct json_node *list)
{
    bool known = true;
    for (const struct json_node *item = rule_first(list); item; item = item->next)
        known = known && rule_one_of(rule_text_of(c, item), VERBS);
    if (!rule_count(list))
        bad_required(c, at, "verbs must contain at least one value");
    else if (rule_list_has(c, list, "*") && rule_count(list) > 1)
        bad_node(c, at, list, "if '*' is present, must not specify other verbs");
    else if (!rule_list_has(c, list, "*") && !known)
        bad_choice_node(c, at, list, VERBS);
}

static void check_some(struct check *c, const struct at *at, const struct json_node *list,
                       const char *none, const char *others)
{
    if (!rule_count(list))
        bad_required(c, at, none);
    else if (rule_count(list) > 1 && rule_list_has(c, list, "*"))
        bad_node(c, at, list, others);
}

static void check_namespaces(struct check *c, const struct at *at, const struct json_node *rule)
{
    const struct json_node *list = rule_member(rule, "namespaces");
    char why[NAME_ERROR_BYTES];
    size_t i = 0;
    /* Without namespaces and cluster scope the rule would match nothing. */
    if (!rule_count(list) && !rule_truth(rule, "clusterScope")) {
        bad_required(c, at,
                     "resource rules that are not cluster scoped must supply at least one "
                     "namespace");
        return;
    }
    if (rule_list_has(c, list, "*")) {
        if (rule_count(list) > 1)
            bad_node(c, at, list, "if '*' is present, must not specify other namespaces");
        return;
    }
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        if (!dns_label_valid(rule_text_of(c, item), why))
            bad_texts(c, AT_ITEM(at, i), rule_text_of(c, item),
                      "each member of this list must be '*' or a DNS-1123 label; ", why);
    }
}

static void check_resource_rule(struct check *c, const struct at *at, const struct json_node *rule)
{
    check_verbs(c, AT(at, "verbs"), rule_member(rule, "verbs"));
    check_some(c, AT(at, "apiGroups"), rule_member(rule, "apiGroups"),
               "resource rules must supply at least one api group",
               "if '*' is present, must not specify other api groups");
    check_some(c, AT(at, "resources"), rule_member(rule, "resources"),
               "resource rules must supply at least one resource",
               "if '*' is present, must not specify other resources");
    check_namespaces(c, AT(at, "namespaces"), rule);
}

static void check_path(struct check *c, const struct at *at, struct slice path)
{
    size_t stars = 0;
    for (size_t i = 0; i < path.len; i++)
        stars += path.ptr[i] == '*';
    bool ends = path.len >= 2 && memcmp(path.ptr + path.len - 2, "/*", 2) == 0;
    if (!path.len)
        bad_text(c, at, path, "must not be empty");
    else if (path.ptr[0] != '/')
        bad_text(c, at, path, "must start with slash");
    else if (memchr(path.ptr, ' ', path.len))
        bad_text(c, at, path, "must not contain white-space");
    else if (memmem(path.ptr, path.len, "//", 2))
        bad_text(c, at, path, "must not contain double slash");
    else if (stars > 1 || (stars == 1 && !ends))
        bad_text(c, at, path, "wildcard can only do suffix matching");
}

static void check_url_rule(struct check *c, const struct at *at, const struct json_node *rule)
{
    const struct json_node *list = rule_member(rule, "nonResourceURLs");
    const struct at *in = AT(at, "nonResourceURLs");
    bool all = rule_list_has(c, list, "*");
    size_t i = 0;
    check_verbs(c, AT(at, "verbs"), rule_member(rule, "verbs"));
    check_some(c, in, list, "nonResourceURLs must contain at least one value",
               "if '*' is present, must not specify other non-resource URLs");
    for (const struct json_node *item = rule_first(list); item && !all; item = item->next)
        check_path(c, AT_ITEM(in, i++), rule_text_of(c, item));
}

static void check_flow_rule(struct check *c, const struct at *at, const struct json_node *rule)
{
    const struct at *subjects = AT(at, "subjects");
    if (!rule_filled(rule, "subjects"))
        bad_required(c, subjects, "subjects must contain at least one value");
    rule_one(c, at, rule, "subjects", EACH, PART(check_subject));
    if (!rule_filled(rule, "resourceRules") && !rule_filled(rule, "nonResourceRules"))
        bad_required(c, at,
                     "at least one of resourceRules and nonResourceRules has to be non-empty");
    rule_one(c, at, rule, "resourceRules", EACH, PART(check_resource_rule));
    rule_one(c, at, rule, "nonResourceRules", EACH, PART(check_url_rule));
}

static void check_fixed_schema(struct check *c, const struct at *at, const struct json_node *spec,
                               struct slice name)
{
    const char *fixed = slice_is(name, "exempt")      ? exempt_schema
                        : slice_is(name, "catch-all") ? catch_all_schema
                                                      : NULL;
    char why[64];
    if (!fixed || equals(c, spec, fixed))
        return;
    snprintf(why, sizeof(why), "spec of '%.*s' must equal the fixed value", SLICE_ARGS(name));
    bad_raw(c, at, show_struct(c, spec, &schema_type), why);
}

static void check_flow_conditions(struct check *c, const struct json_node *object)
{
    const struct at *at = AT(AT(NULL, "status"), "conditions");
    struct seen seen = {0};
    size_t i = 0;
    for (const struct json_node *item = rule_first(json_node_path(object, "status.conditions"));
         item; item = item->next, i++) {
        struct slice type = rule_text(c, item, "type");
        if (!seen_add(c, &seen, type))
            bad_repeat(c, AT(AT_ITEM(at, i), "type"), type);
        if (!type.len)
            bad_required(c, AT(AT_ITEM(at, i), "type"), NULL);
    }
}

void kube_validate_flow_schema(struct check *c, const struct json_node *object,
                               const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec");
    const struct json_node *method = rule_member(spec, "distinguisherMethod");
    const struct at *at = AT(NULL, "spec");
    const struct at *of_level = AT(AT(at, "priorityLevelConfiguration"), "name");
    struct slice name = rule_text(c, rule_member(object, "metadata"), "name");
    struct slice level = rule_text(c, rule_member(spec, "priorityLevelConfiguration"), "name");
    (void)old;
    const struct at *in = AT(at, "matchingPrecedence");
    int64_t precedence = rule_int(spec, "matchingPrecedence", 0);
    if (precedence <= 0)
        bad_int(c, in, precedence, "must be a positive value");
    if (precedence > PRECEDENCE_MAX)
        bad_int(c, in, precedence, "must not be greater than 10000");
    /* Nothing may be matched before the schema that keeps the system's own requests from
     * waiting. */
    if (precedence == 1 && !slice_is(name, "exempt"))
        bad_int(c, in, precedence, "only the schema named 'exempt' may have matchingPrecedence 1");
    if (method && !rule_one_of(rule_text(c, method, "type"), "ByNamespace,ByUser"))
        bad_choice_raw(c, AT(AT(at, "distinguisherMethod"), "type"),
                       show_struct(c, method, &method_type), "ByNamespace,ByUser");
    if (level.len)
        rule_name(c, of_level, level, subdomain_valid);
    else
        bad_required(c, of_level, "must reference a priority level");
    rule_one(c, at, spec, "rules", EACH, PART(check_flow_rule));
    check_fixed_schema(c, at, spec, name);
    check_flow_conditions(c, object);
}

void kube_validate_flow_status(struct check *c, const struct json_node *object,
                               const struct json_node *old)
{
    (void)old;
    check_flow_conditions(c, object);
}

/* -- Levels -- */

/* Whether more than 2^60 hands can be dealt; drawn cards are put back. */
static bool has_too_many_hands(int64_t queues, int64_t hand)
{
    const uint64_t most = (uint64_t)1 << ENTROPY_BITS_MAX;
    uint64_t hands = 1;
    for (int64_t i = 0; i < hand && queues > 1; i++) {
        if (hands > most / (uint64_t)queues)
            return true;
        hands *= (uint64_t)queues;
    }
    return false;
}

static void check_queuing(struct check *c, const struct at *at, const struct json_node *queuing)
{
    static const struct rule rules[] = {
        {"queueLengthLimit", ALWAYS, WITHIN(1, INT64_MAX, "must be positive")},
        {"queues", ALWAYS, WITHIN(1, INT64_MAX, "must be positive")},
        {"queues", ALWAYS, WITHIN(INT64_MIN, QUEUES_MAX, "must not be greater than 10000000")},
        {"handSize", ALWAYS, WITHIN(1, INT64_MAX, "must be positive")},
    };
    int64_t queues = rule_int(queuing, "queues", 0), hand = rule_int(queuing, "handSize", 0);
    char why[128];
    rule_rows(c, at, queuing, rules);
    if (hand <= 0)
        return;
    if (hand > queues) {
        snprintf(why, sizeof(why), "should not be greater than queues (%lld)", (long long)queues);
        bad_int(c, AT(at, "handSize"), hand, why);
    } else if (has_too_many_hands(queues, hand)) {
        snprintf(why, sizeof(why),
                 "required entropy bits of deckSize %lld and handSize %lld should not be greater "
                 "than 60",
                 (long long)queues, (long long)hand);
        bad_int(c, AT(at, "handSize"), hand, why);
    }
}

static void check_response(struct check *c, const struct at *at, const struct json_node *response)
{
    const struct json_node *queuing = rule_member(response, "queuing");
    struct slice type = rule_text(c, response, "type");
    if (!type.len) {
        bad_required(c, AT(at, "type"), NULL);
    } else if (slice_is(type, "Reject")) {
        if (queuing)
            bad_forbidden(c, AT(at, "queuing"),
                          "must be nil if limited.limitResponse.type is not Limited");
    } else if (!slice_is(type, "Queue")) {
        bad_choice(c, AT(at, "type"), type, "Queue,Reject");
    } else if (!queuing) {
        bad_required(c, AT(at, "queuing"),
                     "must not be empty if limited.limitResponse.type is Limited");
    } else {
        check_queuing(c, AT(at, "queuing"), queuing);
    }
}

#define SHARES                                                                                     \
    {                                                                                              \
        "nominalConcurrencyShares", ALWAYS, WITHIN(0, INT64_MAX, "must be a non-negative integer") \
    }
#define LENDABLE                                                                          \
    {                                                                                     \
        "lendablePercent", ALWAYS, WITHIN(0, 100, "must be between 0 and 100, inclusive") \
    }

static const struct rule exempt_rules[] = {SHARES, LENDABLE};
static const struct rule limited_rules[] = {
    SHARES,
    {"limitResponse", ALWAYS, PART(check_response)},
    LENDABLE,
    {"borrowingLimitPercent", ALWAYS,
     WITHIN(0, INT64_MAX, "if specified, must be a non-negative integer")},
};

static void check_level(struct check *c, const struct at *at, const struct json_node *spec,
                        struct slice name)
{
    const struct json_node *limited = rule_member(spec, "limited"),
                           *exempt = rule_member(spec, "exempt");
    struct slice type = rule_text(c, spec, "type");
    bool is_exempt = slice_is(type, "Exempt");
    if (slice_is(name, "exempt") != is_exempt)
        bad_text(c, AT(at, "type"), type, "must be 'Exempt' if and only if `name` is 'exempt'");
    if (is_exempt) {
        if (limited)
            bad_forbidden(c, AT(at, "limited"), "must be nil if the type is not Limited");
        rule_rows(c, AT(at, "exempt"), exempt, exempt_rules);
    } else if (slice_is(type, "Limited")) {
        if (exempt)
            bad_forbidden(c, AT(at, "exempt"), "must be nil if the type is Limited");
        if (limited)
            rule_rows(c, AT(at, "limited"), limited, limited_rules);
        else
            bad_required(c, AT(at, "limited"), "must not be empty when type is Limited");
    } else if (!type.len) {
        bad_required(c, AT(at, "type"), NULL);
    } else {
        bad_choice(c, AT(at, "type"), type, "Exempt,Limited");
    }
}

static void check_fixed_level(struct check *c, const struct at *at, const struct json_node *spec,
                              struct slice name)
{
    if (slice_is(name, "exempt")) {
        if (!rule_text_is(spec, "type", "Exempt") || rule_member(spec, "limited"))
            bad_raw(c, at, show_struct(c, spec, &level_type),
                    "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value");
    } else if (slice_is(name, "catch-all") && !equals(c, spec, catch_all_level)) {
        bad_raw(c, at, show_struct(c, spec, &level_type),
                "spec of 'catch-all' must equal the fixed value");
    }
}

void kube_validate_priority_level(struct check *c, const struct json_node *object,
                                  const struct json_node *old)
{
    struct slice name = rule_text(c, rule_member(object, "metadata"), "name");
    const struct at *at = AT(NULL, "spec");
    (void)old;
    check_level(c, at, rule_member(object, "spec"), name);
    check_fixed_level(c, at, rule_member(object, "spec"), name);
    check_flow_conditions(c, object);
}
