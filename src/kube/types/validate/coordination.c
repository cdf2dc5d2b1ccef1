/* Lease and PriorityClass. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/rules.h"

#include <stdio.h>

void kube_validate_lease(struct check *c, const struct json_node *object,
                         const struct json_node *old)
{
    static const struct rule rules[] = {
        {"leaseDurationSeconds", IF_SET, WITHIN(1, INT64_MAX, "must be greater than 0")},
        {"leaseTransitions", ALWAYS, NUMBER(rule_not_negative)},
    };
    (void)old;
    rule_rows(c, AT(NULL, "spec"), rule_member(object, "spec"), rules);
}

/* -- PriorityClass -- */

enum { USER_PRIORITY_MAX = 1000000000 };

static const struct {
    const char *name;
    int64_t value;
} system_classes[] = {
    {"system-node-critical", 2000001000},
    {"system-cluster-critical", 2000000000},
};

static void check_system_class(struct check *c, const struct json_node *object, struct slice name)
{
    char why[384];
    size_t i = 0;
    while (i < COUNT_OF(system_classes) && !slice_is(name, system_classes[i].name))
        i++;
    if (i == COUNT_OF(system_classes))
        snprintf(why, sizeof(why), "%.*s is not a known system priority class", SLICE_ARGS(name));
    else if (rule_int(object, "value", 0) != system_classes[i].value)
        snprintf(why, sizeof(why), "value of %s PriorityClass must be %lld", system_classes[i].name,
                 (long long)system_classes[i].value);
    else if (rule_truth(object, "globalDefault"))
        snprintf(why, sizeof(why), "globalDefault of %s PriorityClass must be false",
                 system_classes[i].name);
    else
        return;
    char text[512];
    snprintf(
        text, sizeof(text),
        "priority class names with 'system-' prefix are reserved for system use only. error: %s",
        why);
    bad_forbidden(c, AT(AT(NULL, "metadata"), "name"), text);
}

void kube_validate_priority_class(struct check *c, const struct json_node *object,
                                  const struct json_node *old)
{
    struct slice name = rule_text(c, rule_member(object, "metadata"), "name");
    const struct json_node *policy = rule_member(object, "preemptionPolicy");
    if (old) {
        if (rule_int(object, "value", 0) != rule_int(old, "value", 0))
            bad_forbidden(c, AT(NULL, "value"), "may not be changed in an update.");
        rule_immutable_choice(c, AT(NULL, "preemptionPolicy"), policy,
                              rule_member(old, "preemptionPolicy"), "PreemptLowerPriority");
        return;
    }
    if (name.len >= 7 && memcmp(name.ptr, "system-", 7) == 0)
        check_system_class(c, object, name);
    else if (rule_int(object, "value", 0) > USER_PRIORITY_MAX)
        bad_forbidden(c, AT(NULL, "value"),
                      "maximum allowed value of a user defined priority is 1000000000");
    if (policy)
        rule_preemption_policy(c, AT(NULL, "preemptionPolicy"), rule_text_of(c, policy));
}

void rule_preemption_policy(struct check *c, const struct at *at, struct slice policy)
{
    if (!policy.len)
        bad_required(c, at, NULL);
    else
        rule_choice(c, at, policy, "PreemptLowerPriority,Never");
}
