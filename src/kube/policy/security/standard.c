#include "kube/policy/security/standard.h"

#include "kube/types/go_text.h"

#include <stdio.h>

#define LABEL "pod-security.kubernetes.io/"

static const char *const levels[] = {
    [POD_LEVEL_PRIVILEGED] = "privileged",
    [POD_LEVEL_BASELINE] = "baseline",
    [POD_LEVEL_RESTRICTED] = "restricted",
};

bool pod_level_read(struct slice text, enum pod_level *ret_level)
{
    for (size_t i = 0; i < COUNT_OF(levels); i++)
        if (slice_is(text, levels[i])) {
            *ret_level = (enum pod_level)i;
            return true;
        }
    return false;
}

const char *pod_level_name(enum pod_level level)
{
    return levels[level];
}

bool pod_version_read(struct slice text, int64_t *ret_minor)
{
    uint64_t minor;
    if (slice_is(text, "latest")) {
        *ret_minor = POD_VERSION_LATEST;
        return true;
    }
    if (!slice_has_prefix(text, SLICE_LITERAL("v1.")))
        return false;
    struct slice digits = slice_sub(text, 3, text.len - 3);
    bool is_padded = digits.len > 1 && digits.ptr[0] == '0';
    if (is_padded || !slice_decimal(digits, &minor) || minor > INT64_MAX)
        return false;
    *ret_minor = (int64_t)minor;
    return true;
}

/* -- Labels -- */

struct labels {
    const struct json_node *node;
    struct arena *arena;
    struct kube_field_errors *errors; /* NULL: they are not wanted */
    bool fine;
};

static void report(struct labels *labels, const char *name, const struct json_node *label,
                   const char *why)
{
    char field[128];
    struct buf shown = {0};
    labels->fine = false;
    if (!labels->errors)
        return;
    snprintf(field, sizeof(field), "metadata.labels[" LABEL "%s]", name);
    if (go_value_append(label, labels->arena, &shown) != ST_OK)
        labels->errors->no_memory = true;
    kube_field_errors_add(labels->errors, "FieldValueInvalid", slice_from_text(field),
                          "Invalid value: %.*s: %s", SLICE_ARGS(buf_slice(&shown)), why);
    buf_fini(&shown);
}

/* NULL: the namespace has no such label. */
static const struct json_node *label_of(struct labels *labels, const char *mode, const char *suffix,
                                        struct slice *ret_text)
{
    char name[64];
    snprintf(name, sizeof(name), LABEL "%s%s", mode, suffix);
    const struct json_node *label = json_node_named(labels->node, name);
    if (label && json_node_text(label, labels->arena, ret_text) != ST_OK)
        *ret_text = SLICE_EMPTY; /* which is neither a level nor a version */
    return label;
}

/* Returns whether there is a label for the level, and one that can be read. */
static bool read_level(struct labels *labels, const char *mode, enum pod_level if_unreadable,
                       struct pod_standard *standard, bool *ret_readable)
{
    struct slice text;
    const struct json_node *label = label_of(labels, mode, "", &text);
    *ret_readable = label && pod_level_read(text, &standard->level);
    if (label && !*ret_readable) {
        standard->level = if_unreadable;
        report(labels, mode, label, POD_LEVEL_RULE);
    }
    return label;
}

static bool read_version(struct labels *labels, const char *mode, struct pod_standard *standard)
{
    char name[32];
    struct slice text;
    const struct json_node *label = label_of(labels, mode, "-version", &text);
    if (label && !pod_version_read(text, &standard->minor)) {
        standard->minor = POD_VERSION_LATEST;
        snprintf(name, sizeof(name), "%s-version", mode);
        report(labels, name, label, POD_VERSION_RULE);
    }
    return label;
}

bool pod_policy_read(const struct json_node *labels, const struct pod_policy *defaults,
                     struct arena *arena, struct pod_policy *ret_policy,
                     struct kube_field_errors *errors)
{
    struct labels l = {.node = labels, .arena = arena, .errors = errors, .fine = true};
    struct pod_policy policy = *defaults;
    bool enforces, audits, warns;
    read_level(&l, "enforce", POD_LEVEL_RESTRICTED, &policy.enforce, &enforces);
    read_version(&l, "enforce", &policy.enforce);
    read_level(&l, "audit", POD_LEVEL_PRIVILEGED, &policy.audit, &audits);
    read_version(&l, "audit", &policy.audit);
    bool has_warn = read_level(&l, "warn", POD_LEVEL_PRIVILEGED, &policy.warn, &warns);
    bool has_warn_version = read_version(&l, "warn", &policy.warn);
    /* The namespace enforces more than it would warn about by default. Its users are warned of
     * workloads whose pods would be refused. */
    if (!has_warn && enforces && policy.enforce.level > policy.warn.level) {
        policy.warn.level = policy.enforce.level;
        if (!has_warn_version)
            policy.warn.minor = policy.enforce.minor;
    }
    *ret_policy = policy;
    return l.fine;
}

/* -- Comparing and showing -- */

bool pod_standard_equal(const struct pod_standard *a, const struct pod_standard *b)
{
    return a->level == b->level && a->minor == b->minor;
}

bool pod_standard_is_stricter(const struct pod_standard *now, const struct pod_standard *before)
{
    if (pod_standard_equal(now, before) || now->level == POD_LEVEL_PRIVILEGED)
        return false;
    return now->minor != before->minor || now->level > before->level;
}

bool pod_policy_is_privileged(const struct pod_policy *policy)
{
    return policy->enforce.level == POD_LEVEL_PRIVILEGED &&
           policy->warn.level == POD_LEVEL_PRIVILEGED &&
           policy->audit.level == POD_LEVEL_PRIVILEGED;
}

const char *pod_standard_text(const struct pod_standard *standard, char text[POD_STANDARD_BYTES])
{
    if (standard->minor == POD_VERSION_LATEST)
        snprintf(text, POD_STANDARD_BYTES, "%s:latest", levels[standard->level]);
    else
        snprintf(text, POD_STANDARD_BYTES, "%s:v1.%lld", levels[standard->level],
                 (long long)standard->minor);
    return text;
}
