/* Environment variables, and references of the downward API. */
#include "kube/types/validate/names.h"
#include "kube/types/validate/quantity.h"
#include "kube/types/validate/rules.h"
#include "kube/types/validate/workload/pod.h"
#include "kube/types/validate/workload/volume.h"

#define FIELDS                                                                             \
    "metadata.name,metadata.namespace,metadata.uid,spec.nodeName,spec.serviceAccountName," \
    "status.hostIP,status.hostIPs,status.podIP,status.podIPs"
#define KNOWN_FIELDS FIELDS ",metadata.annotations,metadata.labels,spec.restartPolicy,status.phase"
#define AMOUNTS                                                       \
    "limits.cpu,limits.ephemeral-storage,limits.memory,requests.cpu," \
    "requests.ephemeral-storage,requests.memory"

/* -- Fields -- */

/* metadata.labels['a'] */
static bool has_subscript(struct slice path, struct slice *ret_name, struct slice *ret_key)
{
    const uint8_t *open = path.len ? memchr(path.ptr, '[', path.len) : NULL;
    size_t at = open ? (size_t)(open - path.ptr) : 0;
    if (!open || path.len < at + 4 || path.ptr[at + 1] != '\'' ||
        memcmp(path.ptr + path.len - 2, "']", 2) != 0)
        return false;
    *ret_name = slice_sub(path, 0, at);
    *ret_key = slice_sub(path, at + 2, path.len - at - 4);
    return true;
}

static void bad_field_path(struct check *c, const struct at *at, struct slice path,
                           const char *what)
{
    AUTO(buf_fini) struct buf why = {0};
    if (buf_append_format(&why, "error converting fieldPath: field label %s: %.*s", what,
                          SLICE_ARGS(path)) != ST_OK ||
        buf_append(&why, slice_of("", 1)) != ST_OK)
        c->errors->no_memory = true;
    else
        bad_text(c, AT(at, "fieldPath"), path, (const char *)why.ptr);
}

void rule_field_ref(struct check *c, const struct at *at, const struct json_node *ref,
                    const char *paths)
{
    struct slice path = rule_text(c, ref, "fieldPath"), name, key;
    if (!path.len) {
        bad_required(c, AT(at, "fieldPath"), NULL);
    } else if (has_subscript(path, &name, &key)) {
        if (!rule_one_of(name, "metadata.annotations,metadata.labels"))
            bad_field_path(c, at, path, "does not support subscript");
        else
            rule_name(c, at, key, label_key_valid);
    } else if (!rule_one_of(path, KNOWN_FIELDS)) {
        bad_field_path(c, at, path, "not supported");
    } else {
        rule_choice(c, AT(at, "fieldPath"), path, paths);
    }
}

/* -- Amounts -- */

static void check_divisor(struct check *c, const struct at *at, const struct json_node *ref,
                          struct slice resource)
{
    static const char *const sizes = "1,1k,1M,1G,1T,1P,1E,1Ki,1Mi,1Gi,1Ti,1Pi,1Ei";
    const struct json_node *divisor = rule_member(ref, "divisor");
    struct slice text;
    /* A divisor of 0 stands for the default. */
    if (!divisor || !quantity_of(c, divisor))
        return;
    text = quantity_text(c, divisor);
    if (rule_one_of(resource, "limits.cpu,requests.cpu")) {
        if (!rule_one_of(text, "1m,1"))
            bad_text(c, AT(at, "divisor"), resource,
                     "only divisor's values 1m and 1 are supported with the cpu resource");
    } else if (rule_one_of(resource, "limits.memory,requests.memory") &&
               !rule_one_of(text, sizes)) {
        bad_text(
            c, AT(at, "divisor"), resource,
            "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are "
            "supported with the memory resource");
    }
}

void rule_resource_ref(struct check *c, const struct at *at, const struct json_node *ref,
                       bool of_volume)
{
    struct slice resource = rule_text(c, ref, "resource");
    if (of_volume && !rule_text(c, ref, "containerName").len)
        bad_required(c, AT(at, "containerName"), NULL);
    else if (!resource.len)
        bad_required(c, AT(at, "resource"), NULL);
    else if (!slice_has_prefix(resource, slice_from_text("limits.hugepages-")) &&
             !slice_has_prefix(resource, slice_from_text("requests.hugepages-")))
        rule_choice(c, AT(at, "resource"), resource, AMOUNTS);
    check_divisor(c, at, ref, resource);
}

/* -- Variables -- */

static const struct rule key_ref_rules[] = {
    {"name", ALWAYS, NAME(subdomain_valid)},
    {"key", NEEDED, NAME(config_key_valid)},
};

static const struct rule file_ref_rules[] = {
    {"key", NEEDED, NAME(env_name_valid)},
    {"volumeName", NEEDED, NAME(dns_label_valid)},
    {"path", NEEDED, TEXT(rule_path_stays)},
};

static void check_env_field(struct check *c, const struct at *at, const struct json_node *ref)
{
    rule_field_ref(c, at, ref, FIELDS);
}

static void check_env_resource(struct check *c, const struct at *at, const struct json_node *ref)
{
    rule_resource_ref(c, at, ref, false);
}

static const struct rule source_rules[] = {
    {"fieldRef", IF_SET, PART(check_env_field)},
    {"resourceFieldRef", IF_SET, PART(check_env_resource)},
    {"configMapKeyRef", IF_SET, ROWS(key_ref_rules)},
    {"secretKeyRef", IF_SET, ROWS(key_ref_rules)},
    {"fileKeyRef", IF_SET, ROWS(file_ref_rules)},
};

static void check_value_from(struct check *c, const struct at *at, const struct json_node *var)
{
    const struct json_node *from = rule_member(var, "valueFrom");
    const char *why = NULL;
    int sources = 0;
    if (!from)
        return;
    rule_rows(c, AT(at, "valueFrom"), from, source_rules);
    for (size_t i = 0; i < COUNT_OF(source_rules); i++)
        sources += rule_member(from, source_rules[i].field) != NULL;
    /* Kubernetes reports only the first of these. */
    if (!sources)
        why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
              "`secretKeyRef` or `fileKeyRef`";
    else if (rule_text(c, var, "value").len)
        why = "may not be specified when `value` is not empty";
    else if (sources > 1)
        why = "may not have more than one field specified at a time";
    if (why)
        bad_text(c, AT(at, "valueFrom"), SLICE_EMPTY, why);
}

void rule_env(struct check *c, const struct at *at, const struct json_node *list)
{
    static const struct rule rules[] = {
        {"name", NEEDED, NAME(env_name_valid)},
        {NULL, ALWAYS, PART(check_value_from)},
    };
    rule_one(c, at, list, NULL, EACH, ROWS(rules));
}

/* The name may end in a dash. */
static void check_ref_name(struct check *c, const struct at *at, const struct json_node *ref)
{
    struct slice name = rule_text(c, ref, "name");
    char why[NAME_ERROR_BYTES];
    if (!ref)
        return;
    if (!name.len) {
        bad_required(c, AT(at, "name"), NULL);
        return;
    }
    size_t cut = name.len > 1 && name.ptr[name.len - 1] == '-';
    if (!subdomain_valid(slice_sub(name, 0, name.len - cut), why))
        bad_text(c, AT(at, "name"), name, why);
}

void rule_env_from(struct check *c, const struct at *at, const struct json_node *list)
{
    size_t i = 0;
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        const struct json_node *map = rule_member(item, "configMapRef");
        const struct json_node *secret = rule_member(item, "secretRef");
        rule_one(c, AT_ITEM(at, i), item, "prefix", IF_SOME, NAME(env_name_valid));
        check_ref_name(c, AT(AT_ITEM(at, i), "configMapRef"), map);
        check_ref_name(c, AT(AT_ITEM(at, i), "secretRef"), secret);
        if (!map && !secret)
            bad_text(c, at, SLICE_EMPTY, "must specify one of: `configMapRef` or `secretRef`");
        else if (map && secret)
            bad_text(c, at, SLICE_EMPTY, "may not have more than one field specified at a time");
    }
}
