#include "kube/custom/definition_check.h"

#include "kube/custom/definition.h"
#include "kube/custom/definition_report.h"
#include "kube/custom/definition_rules.h"
#include "kube/custom/definition_webhook.h"
#include "kube/custom/schema_check.h"
#include "kube/types/go_text.h"
#include "kube/types/object/name.h"

#include <stdio.h>

#define LABEL_RULE                                                                               \
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an " \
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "         \
    "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"

/* -- Names -- */

static struct slice text_of(struct definition_check *c, const struct json_node *node)
{
    struct slice text = SLICE_EMPTY;
    if (json_node_text(node, c->arena, &text) != ST_OK)
        c->errors->no_memory = true;
    return text;
}

static bool is_label(struct slice text, bool any_case)
{
    if (!text.len || text.len > 63)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t b = text.ptr[i];
        bool letter = (b >= 'a' && b <= 'z') || (any_case && b >= 'A' && b <= 'Z');
        bool inner = (b >= '0' && b <= '9') || b == '-';
        if (!letter && (i == 0 || !inner))
            return false;
    }
    return text.ptr[text.len - 1] != '-';
}

static const char *label_error(struct slice text)
{
    return text.len > 63 ? "must be no more than 63 characters" : LABEL_RULE;
}

static void check_label(struct definition_check *c, const char *child, const struct json_node *node,
                        bool any_case)
{
    struct slice text = text_of(c, node);
    char why[640];
    if (is_label(text, any_case) || (!text.len && !any_case && !node))
        return;
    snprintf(why, sizeof(why), "%s%s",
             any_case ? "may have mixed case, but should otherwise match: " : "",
             label_error(text));
    check_invalid(c, child, node, why);
}

static void check_label_list(struct definition_check *c, const struct json_node *names,
                             const char *key)
{
    const struct json_node *list = check_array(names, key);
    char child[64];
    size_t at = 0;
    if (!list || !check_few(c, key, list, KUBE_NAMES_MAX))
        return;
    for (const struct json_node *item = list->first; item; item = item->next) {
        snprintf(child, sizeof(child), "%s[%zu]", key, at++);
        check_label(c, child, item, false);
    }
}

static void check_names(struct definition_check *c, const struct json_node *names)
{
    static const char *const keys[] = {"plural", "singular", "kind", "listKind"};
    size_t before = check_enter(c, ".names");
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (!text_of(c, json_node_named(names, keys[i])).len)
            check_required(c, keys[i], "");
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (text_of(c, json_node_named(names, keys[i])).len)
            check_label(c, keys[i], json_node_named(names, keys[i]), i >= 2);
    check_label_list(c, names, "shortNames");
    const struct json_node *kind = json_node_named(names, "kind"),
                           *list = json_node_named(names, "listKind");
    if (kind && list && kind->text.len && json_node_equal(kind, list))
        check_invalid(c, "listKind", list, "kind and listKind may not be the same");
    check_label_list(c, names, "categories");
    check_leave(c, before);
}

static void check_group(struct definition_check *c, const struct json_node *spec)
{
    const struct json_node *node = json_node_named(spec, "group");
    struct slice group = text_of(c, node);
    char why[NAME_ERROR_BYTES];
    if (!group.len)
        check_required(c, "group", "");
    else if (!subdomain_valid(group, why))
        check_invalid(c, "group", node, why);
    else if (!memchr(group.ptr, '.', group.len))
        check_invalid(c, "group", node, "should be a domain with at least one dot");
}

static void check_scope(struct definition_check *c, const struct json_node *spec)
{
    const struct json_node *scope = json_node_named(spec, "scope");
    if (!text_of(c, scope).len)
        check_required(c, "scope", "");
    else if (!json_node_is_text(scope, "Cluster") && !json_node_is_text(scope, "Namespaced"))
        check_unsupported(c, "scope", scope, "\"Cluster\", \"Namespaced\"");
}

/* -- Versions -- */

/*
 * Whether all versions have the same value: then errors are reported once, at the path that v1beta1
 * had.
 */
static bool is_shared(const struct json_node *versions, const char *key)
{
    if (!versions->first)
        return false;
    const struct json_node *first = json_node_named(versions->first, key);
    for (const struct json_node *version = versions->first; version; version = version->next) {
        const struct json_node *own = json_node_named(version, key);
        if (!own || own->type == JSON_TYPE_NULL || !json_node_equal(own, first))
            return false;
    }
    return true;
}

static void check_path(struct definition_check *c, const char *child, const struct json_node *node,
                       const char *under, const char *or_under, const char *why)
{
    struct slice path = text_of(c, node);
    bool simple = path.len && path.ptr[0] == '.';
    if (!simple)
        check_invalid(c, child, node, "must be a simple json path starting with .");
    else if (!slice_has_prefix(path, slice_from_text(under)) &&
             !slice_has_prefix(path, slice_from_text(or_under)))
        check_invalid(c, child, node, why);
}

static void check_scale(struct definition_check *c, const struct json_node *scale)
{
    static const struct {
        const char *key, *under, *or_under, *why;
        bool needed;
    } paths[] = {
        {"specReplicasPath", ".spec.", ".spec.", "should be a json path under .spec", true},
        {"statusReplicasPath", ".status.", ".status.", "should be a json path under .status", true},
        {"labelSelectorPath", ".spec.", ".status.",
         "should be a json path under either .spec or .status", false},
    };
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        const struct json_node *node = json_node_named(scale, paths[i].key);
        char child[64];
        snprintf(child, sizeof(child), "scale.%s", paths[i].key);
        if (text_of(c, node).len)
            check_path(c, child, node, paths[i].under, paths[i].or_under, paths[i].why);
        else if (paths[i].needed)
            check_required(c, child, "");
    }
}

static bool is_among(const struct json_node *node, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (json_node_is_text(node, texts[i]))
            return true;
    return false;
}

static void check_columns(struct definition_check *c, const struct json_node *columns)
{
    static const char *const types[] = {"boolean", "date", "integer", "number", "string"};
    static const char *const formats[] = {"byte",  "date",  "date-time", "double",
                                          "float", "int32", "int64",     "password"};
    size_t at = 0;
    for (const struct json_node *item = columns->first; item; item = item->next, at++) {
        size_t before = check_enter(c, ".additionalPrinterColumns[%zu]", at);
        const struct json_node *type = json_node_named(item, "type"),
                               *format = json_node_named(item, "format"),
                               *path = json_node_named(item, "jsonPath");
        if (!text_of(c, json_node_named(item, "name")).len)
            check_required(c, "name", "");
        if (!text_of(c, type).len)
            check_required(c, "type", "must be one of boolean,date,integer,number,string");
        else if (!is_among(type, types, COUNT_OF(types)))
            check_invalid(c, "type", type, "must be one of boolean,date,integer,number,string");
        if (text_of(c, format).len && !is_among(format, formats, COUNT_OF(formats)))
            check_invalid(c, "format", format,
                          "must be one of byte,date,date-time,double,float,int32,int64,password");
        if (!text_of(c, path).len)
            check_required(c, "JSONPath", "");
        else if (text_of(c, path).ptr[0] != '.')
            check_invalid(c, "JSONPath", path, "must be a simple json path starting with .");
        check_leave(c, before);
    }
    if (columns->count > KUBE_COLUMNS_MAX)
        check_forbidden(c, "additionalPrinterColumns", "there are more than 64");
}

/* Follows properties; NULL: the schema has no such field. */
static const struct json_node *schema_at(const struct json_node *schema, struct slice path)
{
    while (schema && path.len) {
        path = slice_sub(path, 1, path.len - 1);
        const uint8_t *dot = path.len ? memchr(path.ptr, '.', path.len) : NULL;
        size_t len = dot ? (size_t)(dot - path.ptr) : path.len;
        schema = json_node_member(json_node_named(schema, "properties"), slice_sub(path, 0, len));
        path = slice_sub(path, len, path.len - len);
    }
    return schema;
}

static void check_selectable(struct definition_check *c, const struct json_node *list,
                             const struct json_node *schema)
{
    static const char *const types[] = {"string", "boolean", "integer"};
    size_t at = 0;
    for (const struct json_node *item = list->first; item; item = item->next, at++) {
        size_t before = check_enter(c, ".selectableFields[%zu]", at);
        const struct json_node *node = json_node_named(item, "jsonPath");
        struct slice path = text_of(c, node);
        const struct json_node *field =
            path.len && path.ptr[0] == '.' ? schema_at(schema, path) : NULL;
        if (!path.len)
            check_required(c, "jsonPath", "");
        else if (!field)
            check_invalid(c, "jsonPath", node,
                          "is an invalid path: does not refer to a valid field");
        else if (slice_has_prefix(path, SLICE_LITERAL(".metadata")))
            check_invalid(c, "jsonPath", node, "must not point to fields in metadata");
        else if (!is_among(json_node_named(field, "type"), types, COUNT_OF(types)))
            check_invalid(c, "jsonPath", node,
                          "must point to a field of type string, boolean or integer. Enum string "
                          "fields and strings with formats are allowed.");
        check_leave(c, before);
    }
    (void)check_few(c, "selectableFields", list, KUBE_SELECTABLE_MAX);
}

/* Whether an update leaves the schema of a version as it was. */
static bool is_unchanged(const struct definition_check *c, const struct json_node *version)
{
    const struct json_node *name = json_node_named(version, "name");
    for (const struct json_node *old = c->old_versions ? c->old_versions->first : NULL; old;
         old = old->next) {
        const struct json_node *schema = json_node_path(old, "schema.openAPIV3Schema");
        const struct json_node *old_name = json_node_named(old, "name");
        if (name && old_name && json_node_equal(old_name, name))
            return schema &&
                   json_node_equal(schema, json_node_path(version, "schema.openAPIV3Schema"));
    }
    return false;
}

/* Checks the parts of a version that it shares with the others, or those that it does not. */
static void check_parts(struct definition_check *c, const struct json_node *versions,
                        const struct json_node *version, bool shared, struct buf *warning)
{
    const struct json_node *schema = json_node_path(version, "schema.openAPIV3Schema");
    const struct json_node *subresources = json_node_named(version, "subresources");
    const struct json_node *scale = json_node_named(subresources, "scale");
    const struct json_node *columns = check_array(version, "additionalPrinterColumns");
    const struct json_node *fields = check_array(version, "selectableFields");
    size_t before;
    if (schema && is_shared(versions, "schema") == shared) {
        before = check_enter(c, shared ? ".validation" : ".schema");
        c->costs_unchecked = is_unchanged(c, version);
        check_schema(c, schema, check_has(subresources, "status"), warning);
        check_leave(c, before);
    }
    if (scale && is_shared(versions, "subresources") == shared) {
        before = check_enter(c, ".subresources");
        check_scale(c, scale);
        check_leave(c, before);
    }
    if (columns && is_shared(versions, "additionalPrinterColumns") == shared)
        check_columns(c, columns);
    if (fields && is_shared(versions, "selectableFields") == shared)
        check_selectable(c, fields, schema);
}

static void check_version(struct definition_check *c, const struct json_node *versions,
                          const struct json_node *version, size_t at, struct buf *warning)
{
    size_t before = check_enter(c, ".versions[%zu]", at);
    const struct json_node *name = json_node_named(version, "name");
    struct slice text = text_of(c, name);
    if (!is_label(text, false))
        check_invalid(c, "name", name, label_error(text));
    check_parts(c, versions, version, false, warning);
    check_leave(c, before);
}

/* In place of a list that is not given. */
static const struct json_node no_versions = {.type = JSON_TYPE_ARRAY};

/* Shows the list as Go does. */
static void report_versions(struct definition_check *c, const struct json_node *versions,
                            const char *why)
{
    AUTO(buf_fini) struct buf text = {0};
    bool given = versions != &no_versions;
    bool made = buf_append_text(&text, given ? "[" : "null") == ST_OK;
    for (const struct json_node *v = versions->first; v && made; v = v->next)
        made = buf_append_format(
                   &text,
                   "%s{\"Name\":\"%.*s\",\"Served\":%s,\"Storage\":%s,\"Deprecated\":%s,"
                   "\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,"
                   "\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}",
                   v->prev ? "," : "", SLICE_ARGS(text_of(c, json_node_named(v, "name"))),
                   check_is_true(v, "served") ? "true" : "false",
                   check_is_true(v, "storage") ? "true" : "false",
                   check_is_true(v, "deprecated") ? "true" : "false") == ST_OK;
    if (made && buf_append_text(&text, given ? "]" : "") == ST_OK)
        check_invalid_shown(c, "versions", buf_slice(&text), why);
    else
        c->errors->no_memory = true;
}

static void check_versions(struct definition_check *c, const struct json_node *versions,
                           struct buf *warning)
{
    size_t at = 0, stored = 0;
    bool unique = true;
    for (const struct json_node *v = versions->first; v; v = v->next) {
        if (!json_node_path(v, "schema.openAPIV3Schema")) {
            char child[64];
            snprintf(child, sizeof(child), "versions[%zu].schema.openAPIV3Schema", at);
            check_required(c, child, "");
        }
        stored += check_is_true(v, "storage");
        at++;
        for (const struct json_node *other = v->next; other && at <= KUBE_VERSIONS_MAX;
             other = other->next)
            unique = unique && !slice_equal(text_of(c, json_node_named(v, "name")),
                                            text_of(c, json_node_named(other, "name")));
    }
    at = 0;
    for (const struct json_node *v = versions->first; v && at < KUBE_VERSIONS_MAX; v = v->next)
        check_version(c, versions, v, at++, warning);
    if (versions->count > KUBE_VERSIONS_MAX)
        check_forbidden(c, "versions", "there are more than 32");
    if (!unique)
        report_versions(c, versions, "must contain unique version names");
    if (stored != 1)
        report_versions(c, versions, "must have exactly one version marked as storage version");
    /* v1beta1's "version" is the first of the list. */
    const struct json_node *first =
        versions->first ? json_node_named(versions->first, "name") : NULL;
    if (first && text_of(c, first).len && !is_label(text_of(c, first), false))
        check_invalid(c, "version", first, label_error(text_of(c, first)));
}

/* -- Compared with the previous definition -- */

static void check_same(struct definition_check *c, const struct json_node *spec,
                       const struct json_node *old, const char *path)
{
    const struct json_node *now = json_node_path(spec, path), *then = json_node_path(old, path);
    if (!now || !then || !json_node_equal(now, then))
        check_invalid(c, path, now, "field is immutable");
}

static void check_update(struct definition_check *c, const struct json_node *spec,
                         const struct json_node *old, bool established)
{
    if (established) {
        check_same(c, spec, old, "scope");
        check_same(c, spec, old, "names.kind");
    }
    check_same(c, spec, old, "group");
    check_same(c, spec, old, "names.plural");
}

/*
 * Go removes a version from its list at the first match, so a second one of the same name is
 * missing.
 */
static void check_is_stored(struct definition_check *c, const struct json_node *version,
                            const struct json_node *stored)
{
    const struct json_node *name = json_node_named(version, "name"), *item = stored->first;
    char why[128];
    if (!check_is_true(version, "storage"))
        return;
    while (item && !json_node_equal(item, name))
        item = item->next;
    bool twice = false;
    for (const struct json_node *before = version->prev; before; before = before->prev)
        twice = twice || json_node_equal(json_node_named(before, "name"), name);
    struct slice text = text_of(c, name);
    snprintf(why, sizeof(why), "must have the storage version %.*s", (int)size_min(text.len, 64),
             (const char *)text.ptr);
    if (!item || twice)
        check_invalid(c, "status.storedVersions", stored, why);
}

static void check_stored(struct definition_check *c, const struct json_node *object,
                         const struct json_node *versions)
{
    const struct json_node *stored =
        check_array(json_node_named(object, "status"), "storedVersions");
    size_t at = 0;
    if (!stored || !stored->first)
        check_invalid_shown(c, "status.storedVersions", SLICE_LITERAL("null"),
                            "must have at least one stored version");
    for (const struct json_node *v = stored && stored->first ? versions->first : NULL; v;
         v = v->next)
        check_is_stored(c, v, stored);
    for (const struct json_node *item = stored ? stored->first : NULL; item;
         item = item->next, at++) {
        const struct json_node *same = versions->first;
        char child[64], why[512];
        struct slice name = text_of(c, item);
        while (same && !json_node_equal(json_node_named(same, "name"), item))
            same = same->next;
        if (same)
            continue;
        snprintf(child, sizeof(child), "status.storedVersions[%zu]", at);
        name.len = size_min(name.len, 64);
        snprintf(why, sizeof(why),
                 "missing from spec.versions; %.*s was previously a storage version, and must "
                 "remain in spec.versions until a storage migration ensures no data remains "
                 "persisted in %.*s and removes %.*s from status.storedVersions",
                 SLICE_ARGS(name), SLICE_ARGS(name), SLICE_ARGS(name));
        check_invalid(c, child, item, why);
    }
}

static bool is_established(const struct json_node *object)
{
    const struct json_node *list = check_array(json_node_named(object, "status"), "conditions");
    for (const struct json_node *item = list ? list->first : NULL; item; item = item->next)
        if (json_node_is_text(json_node_named(item, "type"), "Established"))
            return json_node_is_text(json_node_named(item, "status"), "True");
    return false;
}

/* -- The definition -- */

static void check_own_name(struct definition_check *c, const struct json_node *object,
                           const struct json_node *spec)
{
    AUTO(buf_fini) struct buf expected = {0};
    const struct json_node *name = json_node_path(object, "metadata.name");
    if (buf_append(&expected, text_of(c, json_node_path(spec, "names.plural"))) != ST_OK ||
        buf_append_text(&expected, ".") != ST_OK ||
        buf_append(&expected, text_of(c, json_node_named(spec, "group"))) != ST_OK)
        c->errors->no_memory = true;
    else if (!slice_equal(text_of(c, name), buf_slice(&expected)))
        check_invalid(c, "metadata.name", name, "must be spec.names.plural+\".\"+spec.group");
}

/* Groups of Kubernetes itself need an annotation of approval. */
static void check_approval(struct definition_check *c, const struct json_node *object,
                           struct slice group)
{
    static const char key[] = "api-approved.kubernetes.io";
    static const char *const domains[] = {".k8s.io", ".kubernetes.io"};
    bool is_protected = slice_equal(group, SLICE_LITERAL("k8s.io")) ||
                        slice_equal(group, SLICE_LITERAL("kubernetes.io"));
    for (size_t i = 0; i < COUNT_OF(domains); i++) {
        struct slice domain = slice_from_text(domains[i]);
        is_protected = is_protected ||
                       (group.len > domain.len &&
                        slice_equal(slice_sub(group, group.len - domain.len, domain.len), domain));
    }
    const struct json_node *notes = json_node_path(object, "metadata.annotations");
    if (is_protected && !text_of(c, json_node_named(notes, key)).len)
        check_required(c, "metadata.annotations[api-approved.kubernetes.io]",
                       "protected groups must have approval annotation "
                       "\"api-approved.kubernetes.io\", see "
                       "https://github.com/kubernetes/enhancements/pull/1111");
}

static void check_spec(struct definition_check *c, const struct json_node *spec,
                       const struct json_node *old, const struct json_node *versions,
                       struct buf *warning)
{
    check_group(c, spec);
    check_scope(c, spec);
    check_versions(c, versions, warning);
    check_names(c, json_node_named(spec, "names"));
    if (versions->first)
        check_parts(c, versions, versions->first, true, warning);
    kube_definition_check_conversion(c, spec, old, is_established(old));
    if (check_is_true(spec, "preserveUnknownFields"))
        check_invalid(c, "preserveUnknownFields", json_node_named(spec, "preserveUnknownFields"),
                      "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                      "spec.versions[*].schema instead");
}

static void validate(struct arena *arena, const struct json_node *object,
                     const struct json_node *old, struct kube_field_errors *errors,
                     struct buf *warning, struct rule_reports *reports)
{
    struct definition_check c = {
        .arena = arena, .errors = errors, .steps = SCHEMA_STEPS_MAX, .reports = reports};
    const struct json_node *spec = json_node_named(object, "spec");
    const struct json_node *versions = check_array(spec, "versions");
    if (!versions)
        versions = &no_versions;
    c.old_versions = old ? check_array(json_node_named(old, "spec"), "versions") : NULL;
    patterns_init(&c.patterns, arena);
    if (!old)
        check_own_name(&c, object, spec);
    size_t before = check_enter(&c, ".spec");
    check_spec(&c, spec, old, versions, warning);
    if (old)
        check_update(&c, spec, json_node_named(old, "spec"), is_established(old));
    check_leave(&c, before);
    check_stored(&c, object, versions);
    if (!old)
        check_approval(&c, object, text_of(&c, json_node_named(spec, "group")));
    patterns_fini(&c.patterns);
    buf_fini(&c.path);
}

void kube_definition_validate(struct arena *arena, const struct json_node *object,
                              const struct json_node *old, struct kube_field_errors *errors,
                              struct buf *warning)
{
    validate(arena, object, old, errors, warning, NULL);
}

enum status kube_definition_report(struct arena *arena, struct json_node *object,
                                   struct rule_reports *ret_reports,
                                   struct kube_field_errors *errors)
{
    AUTO(buf_fini) struct buf warning = {0};
    struct kube_status answer = {0};
    struct kube_meta meta = {.arena = arena, .status = &answer};
    struct json_node *status;
    *ret_reports = (struct rule_reports){0};
    if (!kube_definition_set_defaults(&meta, object) ||
        !kube_meta_object(&meta, object, "status", &status) ||
        !kube_definition_add_stored_version(&meta, object, status))
        return ST_NOMEM;
    validate(arena, object, NULL, errors, &warning, ret_reports);
    return errors->no_memory ? ST_NOMEM : ST_OK;
}
