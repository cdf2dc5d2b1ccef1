#include "kube/policy/security/settings.h"

#include "base/slices.h"
#include "kube/types/go_text.h"
#include "kube/types/object/name.h"

#include <stdio.h>

enum { FIELD_BYTES = 96 };

#define PRIVILEGED                               \
    {                                            \
        POD_LEVEL_PRIVILEGED, POD_VERSION_LATEST \
    }

const struct pod_security_settings pod_security_unconfigured = {
    .defaults = {PRIVILEGED, PRIVILEGED, PRIVILEGED}};

/* One configuration while it is read. */
struct reading {
    const struct json_node *config;
    struct arena *arena;
    struct kube_field_errors *errors;
};

/* -- Defaults -- */

/* A copy. Empty: the member is absent, or there is no memory for it. */
static struct slice text_of(struct reading *r, const struct json_node *node)
{
    struct slice text;
    return node && json_node_text(node, r->arena, &text) == ST_OK &&
                   arena_dup(r->arena, text, &text) == ST_OK
               ? text
               : SLICE_EMPTY;
}

static void refuse(struct reading *r, const char *field, struct slice value, const char *why)
{
    AUTO(buf_fini) struct buf quoted = {0};
    if (go_quote(value, &quoted) != ST_OK) {
        r->errors->no_memory = true;
        return;
    }
    kube_field_errors_add(r->errors, "FieldValueInvalid", slice_from_text(field),
                          "Invalid value: %.*s: %s", SLICE_ARGS(buf_slice(&quoted)), why);
}

static void read_mode(struct reading *r, const char *mode, struct pod_standard *ret_standard)
{
    char field[FIELD_BYTES];
    *ret_standard = (struct pod_standard)PRIVILEGED;
    snprintf(field, sizeof(field), "defaults.%s", mode);
    struct slice level = text_of(r, json_node_path(r->config, field));
    if (level.len && !pod_level_read(level, &ret_standard->level))
        refuse(r, field, level, POD_LEVEL_RULE);
    snprintf(field, sizeof(field), "defaults.%s-version", mode);
    struct slice version = text_of(r, json_node_path(r->config, field));
    if (version.len && !pod_version_read(version, &ret_standard->minor))
        refuse(r, field, version, POD_VERSION_RULE);
}

/* -- Exemptions -- */

static bool is_user(struct slice name, char why[NAME_ERROR_BYTES])
{
    snprintf(why, NAME_ERROR_BYTES, "username must not be empty");
    return name.len;
}

static void refuse_repeat(struct reading *r, const char *field, struct slice name)
{
    AUTO(buf_fini) struct buf quoted = {0};
    if (go_quote(name, &quoted) == ST_OK)
        kube_field_errors_add(r->errors, "FieldValueDuplicate", slice_from_text(field),
                              "Duplicate value: %.*s", SLICE_ARGS(buf_slice(&quoted)));
    else
        r->errors->no_memory = true;
}

/* A name and its place in the list. */
struct placed {
    struct slice name;
    size_t place;
};

static int order_names(const void *a, const void *b)
{
    const struct placed *first = a, *second = b;
    int order = slice_compare(first->name, second->name);
    return order ? order : (first->place > second->place) - (first->place < second->place);
}

/* Each name only once. */
static void take_names(struct reading *r, const char *list, struct placed *found, size_t count,
                       struct pod_names *ret_names)
{
    char field[FIELD_BYTES];
    struct slice *items = arena_calloc(r->arena, count + 1, sizeof(*items));
    if (!items)
        return;
    qsort(found, count, sizeof(*found), order_names);
    ret_names->items = items;
    for (size_t i = 0; i < count; i++) {
        if (!i || !slice_equal(found[i].name, found[i - 1].name)) {
            items[ret_names->count++] = found[i].name;
            continue;
        }
        snprintf(field, sizeof(field), "exemptions.%s[%zu]", list, found[i].place);
        refuse_repeat(r, field, found[i].name);
    }
}

/* Kubernetes separates several reasons by commas here. */
static void join_reasons(char why[NAME_ERROR_BYTES])
{
    for (char *at = strstr(why, "; "); at; at = strstr(at, "; "))
        *at = ',';
}

static void read_names(struct reading *r, const char *list,
                       bool (*is_valid)(struct slice name, char why[NAME_ERROR_BYTES]),
                       struct pod_names *ret_names)
{
    char field[FIELD_BYTES];
    snprintf(field, sizeof(field), "exemptions.%s", list);
    const struct json_node *node = json_node_path(r->config, field);
    size_t place = 0, count = 0;
    struct placed *found = arena_calloc(r->arena, node ? node->count + 1 : 1, sizeof(*found));
    if (!found)
        return;
    for (const struct json_node *item = json_node_items(node); item; item = item->next, place++) {
        char why[NAME_ERROR_BYTES] = "";
        struct slice name = text_of(r, item);
        snprintf(field, sizeof(field), "exemptions.%s[%zu]", list, place);
        if (is_valid(name, why)) {
            found[count++] = (struct placed){name, place};
            continue;
        }
        join_reasons(why);
        refuse(r, field, name, why);
    }
    take_names(r, list, found, count, ret_names);
}

void pod_security_settings_read(const struct json_node *config, struct arena *arena,
                                struct pod_security_settings *ret_settings,
                                struct kube_field_errors *errors)
{
    struct reading r = {config, arena, errors};
    struct pod_security_settings settings = {0};
    read_mode(&r, "enforce", &settings.defaults.enforce);
    read_mode(&r, "warn", &settings.defaults.warn);
    read_mode(&r, "audit", &settings.defaults.audit);
    read_names(&r, "namespaces", dns_label_valid, &settings.namespaces);
    read_names(&r, "runtimeClasses", subdomain_valid, &settings.runtime_classes);
    read_names(&r, "usernames", is_user, &settings.users);
    *ret_settings = settings;
}

/* -- Using them -- */

bool pod_names_have(const struct pod_names *names, struct slice name)
{
    return name.len && slices_have(names->items, names->count, name);
}

bool pod_security_is_trivial(const struct pod_security_settings *settings)
{
    return pod_policy_is_privileged(&settings->defaults) && !settings->users.count &&
           !settings->namespaces.count && !settings->runtime_classes.count;
}

/* Whether both mean the same: all versions of the level "privileged" do. */
static bool is_same(const struct pod_standard *a, const struct pod_standard *b)
{
    return pod_standard_equal(a, b) ||
           (a->level == POD_LEVEL_PRIVILEGED && b->level == POD_LEVEL_PRIVILEGED);
}

static enum status append_mode(const struct json_node *labels, const char *mode,
                               const struct pod_standard *standard, bool *is_first, struct buf *to)
{
    char level[FIELD_BYTES], version[FIELD_BYTES], text[POD_STANDARD_BYTES];
    snprintf(level, sizeof(level), "pod-security.kubernetes.io/%s", mode);
    snprintf(version, sizeof(version), "pod-security.kubernetes.io/%s-version", mode);
    if (standard->level == POD_LEVEL_PRIVILEGED ||
        (!json_node_named(labels, level) && !json_node_named(labels, version)))
        return ST_OK;
    const char *before = *is_first ? "" : ", ";
    *is_first = false;
    return buf_append_format(to, "%s%s=%s", before, mode, pod_standard_text(standard, text));
}

enum status pod_security_warn_exempt(const struct pod_security_settings *settings,
                                     struct slice namespace, const struct json_node *labels,
                                     const struct pod_policy *policy, struct buf *to)
{
    const struct pod_policy *defaults = &settings->defaults;
    bool is_first = true;
    if (pod_policy_is_privileged(policy) ||
        (is_same(&policy->enforce, &defaults->enforce) &&
         is_same(&policy->audit, &defaults->audit) && is_same(&policy->warn, &defaults->warn)))
        return ST_OK;
    TRY(buf_append_format(to, "namespace \"%.*s\" is exempt from Pod Security, and the policy (",
                          SLICE_ARGS(namespace)));
    TRY(append_mode(labels, "enforce", &policy->enforce, &is_first, to));
    TRY(append_mode(labels, "audit", &policy->audit, &is_first, to));
    TRY(append_mode(labels, "warn", &policy->warn, &is_first, to));
    return buf_append_text(to, ") will be ignored");
}
