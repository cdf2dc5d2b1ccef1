#include "kube/api/custom.h"

#include "kube/object/conversion.h"
#include "kube/patch/print.h"

#include <stdio.h>

/* Of one object while it is changed. */
enum { CONVERT_BYTES_MAX = 64 << 20, API_VERSION_BYTES = 512 };

static const char *api_version(const struct kube_kind *kind, char text[API_VERSION_BYTES])
{
    snprintf(text, API_VERSION_BYTES, "%s/%s", kind->group, kind->version);
    return text;
}

static bool fail_schema(struct kube_call *call)
{
    return kube_fail(&call->status, KUBE_INTERNAL_ERROR,
                     "Internal error occurred: the schema of %s.%s cannot be used",
                     call->kind->plural, call->kind->group);
}

static bool set_text(struct arena *arena, struct json_node *object, const char *key,
                     const char *text)
{
    struct json_node *value = json_node_new_text(arena, slice_from_text(text));
    return value && json_node_set(arena, object, slice_from_text(key), value) == ST_OK;
}

/* -- Writing -- */

/* It says of which kind it is, and that is another one; a Scale, or options of a delete. */
static bool is_foreign(const struct kube_kind *kind, struct json_node *object)
{
    const struct json_node *says = json_node_named(object, "kind");
    return says && !json_node_is_text(says, kind->kind);
}

bool kube_custom_prune(struct kube_call *call, struct json_node *object, struct buf *told)
{
    struct kube_custom *custom = kube_custom_of(call->kind);
    if (!custom || is_foreign(call->kind, object))
        return true;
    const struct schema *schema = kube_custom_schema(custom);
    if (!schema)
        return fail_schema(call);
    enum status status = kube_meta_append_unknown(object, told);
    if (status == ST_OK)
        status = schema_prune(schema, object, true, told);
    return status == ST_OK || kube_fail_engine(&call->status, ST_NOMEM);
}

bool kube_custom_default(struct kube_call *call, struct arena *arena, struct json_node *object)
{
    struct kube_custom *custom = kube_custom_of(call->kind);
    if (!custom || is_foreign(call->kind, object))
        return true;
    const struct schema *schema = kube_custom_schema(custom);
    if (!schema)
        return fail_schema(call);
    return schema_default(arena, schema, object) == ST_OK ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

static void tell_access(const char *field, const struct json_node *node, const char *wanted,
                        struct kube_field_errors *faults)
{
    char shown[PRINT_BYTES];
    kube_field_errors_add(faults, "FieldValueInvalid", slice_from_text(field),
                          "Invalid value: 0: %s accessor error: %s is of the type %s, expected %s",
                          field, print_go(node, shown), print_go_type(node), wanted);
}

/* A number that scale reads must be one. */
static void check_replicas(const struct json_node *object, const char *path,
                           struct kube_field_errors *faults)
{
    char field[512];
    int64_t replicas;
    const struct json_node *node = object;
    const char *rest = path;
    snprintf(field, sizeof(field), ".%s", path ? path : "");
    while (rest && node && node->type == JSON_TYPE_OBJECT) {
        const char *dot = strchr(rest, '.');
        node = json_node_member(node, slice_of(rest, dot ? (size_t)(dot - rest) : strlen(rest)));
        rest = dot ? dot + 1 : NULL;
    }
    if (!path || !node || (rest && node->type == JSON_TYPE_NULL))
        return;
    if (rest || !json_node_int(node, &replicas)) {
        tell_access(field, node, rest ? "map[string]interface{}" : "int64", faults);
        return;
    }
    if (replicas < 0)
        kube_field_errors_add(faults, "FieldValueInvalid", slice_from_text(field),
                              "Invalid value: %lld: should be a non-negative integer",
                              (long long)replicas);
    else if (replicas > INT32_MAX)
        kube_field_errors_add(faults, "FieldValueInvalid", slice_from_text(field),
                              "Invalid value: %lld: should be less than or equal to 2147483647",
                              (long long)replicas);
}

static void check_all(const struct kube_custom *custom, const struct schema *schema,
                      struct arena *arena, const struct json_node *object,
                      const struct json_node *old, struct kube_field_errors *faults)
{
    schema_validate(schema, object, old, SLICE_EMPTY, arena, faults);
    check_replicas(object, custom->replicas_path, faults);
    check_replicas(object, custom->status_replicas_path, faults);
    schema_validate_lists(schema, object, arena, faults);
}

/* Only status is written: what else may be wrong is nobody's fault now. */
static void check_status(const struct kube_custom *custom, const struct schema *schema,
                         struct arena *arena, const struct json_node *object,
                         const struct json_node *old, struct kube_field_errors *faults)
{
    const struct schema *of = schema_property(schema, SLICE_LITERAL("status"));
    const struct json_node *status = json_node_named(object, "status");
    if (of && status)
        schema_validate(of, status, old ? json_node_named(old, "status") : NULL,
                        SLICE_LITERAL("status"), arena, faults);
    check_replicas(object, custom->status_replicas_path, faults);
}

/* Finalizers of custom resources may be called anything; who adds one without a domain is told. */
static void warn_of_finalizers(struct kube_call *call, const struct json_node *object,
                               const struct json_node *old)
{
    static const char *const standard[] = {"kubernetes", "orphan", "foregroundDeletion"};
    const struct json_node *list = json_node_path(object, "metadata.finalizers");
    const struct json_node *had = json_node_path(old, "metadata.finalizers");
    char text[512];
    for (const struct json_node *item = list ? list->first : NULL; item; item = item->next) {
        const struct json_node *same = had ? had->first : NULL;
        bool fine = !item->text.len || memchr(item->text.ptr, '/', item->text.len);
        for (size_t i = 0; i < COUNT_OF(standard); i++)
            fine = fine || json_node_is_text(item, standard[i]);
        while (same && !json_node_equal(same, item))
            same = same->next;
        if (fine || same)
            continue;
        snprintf(text, sizeof(text),
                 "metadata.finalizers: \"%.*s\": prefer a domain-qualified finalizer name%s to "
                 "avoid accidental conflicts with other finalizer writers",
                 (int)size_min(item->text.len, 128), (const char *)item->text.ptr,
                 memchr(item->text.ptr, '.', item->text.len) ? " including a path (/)" : "");
        kube_call_warn(call, slice_from_text(text));
    }
}

bool kube_custom_validate(struct kube_call *call, struct arena *arena,
                          const struct json_node *object, const struct json_node *old,
                          struct slice name)
{
    struct kube_custom *custom = kube_custom_of(call->kind);
    struct kube_field_errors faults = {.arena = &call->arena};
    if (!custom)
        return true;
    const struct schema *schema = kube_custom_schema(custom);
    if (!schema)
        return fail_schema(call);
    bool status = slice_equal(call->path.subresource, SLICE_LITERAL("status"));
    (status ? check_status : check_all)(custom, schema, arena, object, old, &faults);
    if (!faults.count && !faults.no_memory) {
        warn_of_finalizers(call, object, old);
        return true;
    }
    return kube_fail_field_errors(&call->status, &faults, slice_from_text(call->kind->group),
                                  slice_from_text(call->kind->kind), name);
}

bool kube_custom_store(struct kube_call *call, struct arena *arena, struct json_node *object)
{
    struct kube_custom *custom = kube_custom_of(call->kind);
    if (call->kind->flags & KUBE_STORED_CONVERTED)
        return kube_convert_to_stored(call->kind, arena, object) == ST_OK ||
               kube_fail_engine(&call->status, ST_NOMEM);
    if (!custom || is_foreign(call->kind, object))
        return true;
    return set_text(arena, object, "apiVersion", custom->definition->api_version) ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

bool kube_custom_guard(struct kube_call *call)
{
    struct kube_custom *custom = kube_custom_of(call->kind);
    struct kube_write *write = &call->write;
    if (!custom)
        return true;
    write->rule_expected = custom->definition->revision;
    return kube_key_make(&call->arena, KUBE_DEFINITIONS_PREFIX, SLICE_EMPTY,
                         custom->definition->name, &write->rule) == ST_OK ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

void kube_custom_fail_changed(struct kube_call *call)
{
    kube_fail(&call->status, KUBE_TOO_MANY_REQUESTS,
              "the definition of %s.%s has changed meanwhile, please try again", call->kind->plural,
              call->kind->group);
    call->status.retry_after_s = 1;
    kube_call_fail(call);
}

/* -- Reading -- */

/* It was written before the definition became what it is. */
static bool is_old(const struct kube_custom *custom, int64_t revision)
{
    return revision && revision < custom->definition->spec_revision;
}

bool kube_custom_is_plain(const struct kube_kind *kind, int64_t revision)
{
    struct kube_custom *custom = kube_custom_of(kind);
    char version[API_VERSION_BYTES];
    if (kind->flags & KUBE_STORED_CONVERTED)
        return false;
    return !custom || (!is_old(custom, revision) &&
                       strcmp(api_version(kind, version), custom->definition->api_version) == 0);
}

static enum status show(const struct kube_kind *kind, struct arena *arena, struct json_node *object,
                        int64_t revision)
{
    struct kube_custom *custom = kube_custom_of(kind);
    char version[API_VERSION_BYTES];
    if (kind->flags & KUBE_STORED_CONVERTED)
        return kube_convert_from_stored(kind, arena, object);
    if (!custom)
        return ST_OK;
    if (object->type != JSON_TYPE_OBJECT)
        return ST_MALFORMED;
    if (!set_text(arena, object, "apiVersion", api_version(&custom->kind, version)))
        return ST_NOMEM;
    const struct schema *schema = is_old(custom, revision) ? kube_custom_schema(custom) : NULL;
    if (!schema)
        return ST_OK;
    TRY(schema_prune(schema, object, true, NULL));
    return schema_default(arena, schema, object);
}

bool kube_custom_show(struct kube_call *call, struct arena *arena, struct json_node *object,
                      int64_t revision)
{
    return show(call->kind, arena, object, revision) == ST_OK ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

static enum status convert_tree(const struct kube_kind *kind, struct slice json, int64_t revision,
                                struct buf *to)
{
    struct arena arena;
    struct json_node *object;
    struct error error;
    arena_init(&arena, NULL, 0, CONVERT_BYTES_MAX);
    enum status status = json_tree_read(&arena, json, &object, &error);
    if (status == ST_OK)
        status = show(kind, &arena, object, revision);
    if (status == ST_OK)
        status = json_tree_write(object, to);
    arena_fini(&arena);
    return status;
}

/* Only the version is another: the bytes around it are as they were. */
static enum status convert_version(const struct kube_object *object, const char *version,
                                   struct buf *to)
{
    struct slice json = object->json;
    size_t from = (size_t)(object->api_version.ptr - json.ptr);
    size_t behind = from + object->api_version.len;
    TRY(buf_append(to, slice_sub(json, 0, from)));
    TRY(buf_append_text(to, version));
    return buf_append(to, slice_sub(json, behind, json.len - behind));
}

enum status kube_custom_convert(const struct kube_kind *kind, struct slice json, int64_t revision,
                                struct buf *to, struct slice *ret_json)
{
    struct kube_custom *custom = kube_custom_of(kind);
    struct kube_object object;
    char version[API_VERSION_BYTES];
    *ret_json = json;
    if (!custom && !(kind->flags & KUBE_STORED_CONVERTED))
        return ST_OK;
    buf_reset(to, SIZE_MAX);
    if (!custom || is_old(custom, revision)) {
        TRY(convert_tree(kind, json, revision, to));
        *ret_json = buf_slice(to);
        return ST_OK;
    }
    TRY(kube_object_parse_head(json, &object));
    api_version(kind, version);
    if (!object.api_version.ptr || slice_equal(object.api_version, slice_from_text(version)))
        return ST_OK;
    TRY(convert_version(&object, version, to));
    *ret_json = buf_slice(to);
    return ST_OK;
}

bool kube_custom_see(struct kube_call *call, struct slice json, int64_t revision,
                     struct slice *ret_json)
{
    AUTO(buf_fini) struct buf to = {0};
    struct slice made;
    *ret_json = json;
    if (!(call->kind->flags & (KUBE_CUSTOM | KUBE_STORED_CONVERTED)))
        return true;
    enum status status = kube_custom_convert(call->kind, json, revision, &to, &made);
    if (status == ST_OK && to.len)
        status = arena_dup(&call->arena, made, ret_json);
    if (status == ST_MALFORMED)
        return true; /* who looks at it will say so */
    return status == ST_OK || kube_fail_engine(&call->status, status);
}
