#include "kube/api/custom_openapi.h"

#include "base/crc32c.h"
#include "kube/schema/openapi.h"

#include <stdio.h>

enum { VERSION_BYTES = 512, TREE_BYTES_MAX = 64 << 20 };

static const char *version_of(const struct kube_kind *kind, char text[VERSION_BYTES])
{
    snprintf(text, VERSION_BYTES, "%.400s/%.64s", kind->group, kind->version);
    return text;
}

static bool is_of(const struct kube_kind *kind, struct slice api_version)
{
    char text[VERSION_BYTES];
    return kind->flags & KUBE_CUSTOM &&
           (!api_version.len || slice_equal(slice_from_text(version_of(kind, text)), api_version));
}

const char *kube_custom_openapi_hash(const struct kube_kinds *kinds, struct slice api_version,
                                     char text[KUBE_CUSTOM_HASH_BYTES])
{
    size_t count;
    const struct kube_kind *const *rows = kube_kinds_rows(kinds, &count);
    uint32_t hash = crc32c(0, slice_from_text(kube_openapi_hash()));
    for (size_t i = 0; i < count; i++) {
        if (!is_of(rows[i], api_version))
            continue;
        const struct kube_definition *d = kube_custom_of(rows[i])->definition;
        hash = crc32c(hash, d->name);
        hash = crc32c(hash, slice_of(&d->spec_revision, sizeof(d->spec_revision)));
    }
    snprintf(text, KUBE_CUSTOM_HASH_BYTES, "%08X", hash);
    return text;
}

void kube_custom_openapi_index(const struct kube_kinds *kinds, struct json_writer *w)
{
    size_t count;
    const struct kube_kind *const *rows = kube_kinds_rows(kinds, &count);
    char version[VERSION_BYTES], last[VERSION_BYTES] = "", text[VERSION_BYTES + 64];
    char hash[KUBE_CUSTOM_HASH_BYTES];
    for (size_t i = 0; i < count; i++) {
        if (!(rows[i]->flags & KUBE_CUSTOM) || strcmp(version_of(rows[i], version), last) == 0)
            continue;
        memcpy(last, version, sizeof(last));
        snprintf(text, sizeof(text), "apis/%s", version);
        json_key(w, text);
        json_begin_object(w);
        json_key(w, "serverRelativeURL");
        kube_custom_openapi_hash(kinds, slice_from_text(version), hash);
        snprintf(text, sizeof(text), "/openapi/v3/apis/%s?hash=%s", version, hash);
        json_text(w, text);
        json_end_object(w);
    }
}

/* -- Schemas -- */

/* "com.example.v1.Lamp": the group from its end. */
static const char *model_name(const struct kube_kind *kind, char text[VERSION_BYTES])
{
    size_t len = 0, end = strlen(kind->group);
    for (size_t at = end; at-- > 0 && len < VERSION_BYTES / 2;) {
        if (at > 0 && kind->group[at - 1] != '.')
            continue;
        len += (size_t)snprintf(text + len, VERSION_BYTES - len, "%.*s.", (int)(end - at),
                                kind->group + at);
        end = at ? at - 1 : 0;
    }
    snprintf(text + len, VERSION_BYTES - len, "%s.%s", kind->version, kind->kind);
    return text;
}

static struct json_node *parse(struct arena *arena, const char *json)
{
    struct json_node *node = NULL;
    struct slice text; /* the tree borrows it */
    struct error error;
    bool made = arena_dup(arena, slice_from_text(json), &text) == ST_OK &&
                json_tree_read(arena, text, &node, &error) == ST_OK;
    return made ? node : NULL;
}

static enum status set(struct arena *arena, struct json_node *object, const char *key,
                       struct json_node *value)
{
    return value ? json_node_set(arena, object, slice_from_text(key), value) : ST_NOMEM;
}

static enum status add_meta(struct arena *arena, const struct kube_kind *kind,
                            struct json_node *schema)
{
    char gvk[VERSION_BYTES + 128];
    struct json_node *fields = json_node_named(schema, "properties");
    snprintf(gvk, sizeof(gvk), "[{\"group\":\"%.400s\",\"kind\":\"%.64s\",\"version\":\"%.64s\"}]",
             kind->group, kind->kind, kind->version);
    if (!fields || fields->type != JSON_TYPE_OBJECT) {
        fields = json_node_new(arena, JSON_TYPE_OBJECT);
        TRY(set(arena, schema, "properties", fields));
    }
    TRY(set(arena, fields, "apiVersion", parse(arena, "{\"type\":\"string\"}")));
    TRY(set(arena, fields, "kind", parse(arena, "{\"type\":\"string\"}")));
    TRY(set(
        arena, fields, "metadata",
        parse(arena, "{\"allOf\":[{\"$ref\":\"#/components/schemas/" KUBE_OPENAPI_META "\"}]}")));
    return set(arena, schema, "x-kubernetes-group-version-kind", parse(arena, gvk));
}

static struct json_node *find_schema(const struct kube_kind *kind, struct json_node *object)
{
    struct json_node *list = json_node_path(object, "spec.versions");
    struct json_node *item = list && list->type == JSON_TYPE_ARRAY ? list->first : NULL;
    while (item && !json_node_is_text(json_node_named(item, "name"), kind->version))
        item = item->next;
    struct json_node *schema = json_node_path(item, "schema.openAPIV3Schema");
    return schema && schema->type == JSON_TYPE_OBJECT ? schema : NULL;
}

static enum status write_schema(struct arena *arena, const struct kube_kind *kind,
                                struct json_writer *w)
{
    AUTO(buf_fini) struct buf text = {0};
    char name[VERSION_BYTES];
    struct json_node *object, *schema;
    struct error error;
    TRY(json_tree_read(arena, kube_custom_of(kind)->definition->text, &object, &error));
    schema = find_schema(kind, object);
    if (!schema)
        return ST_OK;
    TRY(add_meta(arena, kind, schema));
    TRY(json_tree_write(schema, &text));
    json_key(w, model_name(kind, name));
    json_raw(w, buf_slice(&text));
    return ST_OK;
}

static enum status write_schemas(const struct kube_kinds *kinds, struct slice api_version,
                                 struct json_writer *w)
{
    size_t count;
    const struct kube_kind *const *rows = kube_kinds_rows(kinds, &count);
    for (size_t i = 0; i < count; i++) {
        struct arena arena;
        if (!is_of(rows[i], api_version))
            continue;
        if (w->out->len > KUBE_CUSTOM_OPENAPI_BYTES_MAX)
            return ST_LIMIT;
        arena_init(&arena, NULL, 0, TREE_BYTES_MAX);
        enum status status = write_schema(&arena, rows[i], w);
        arena_fini(&arena);
        TRY(status);
    }
    return kube_openapi_write_meta(w);
}

enum status kube_custom_openapi(const struct kube_kinds *kinds, struct slice api_version,
                                struct buf *to)
{
    size_t count, found = 0;
    const struct kube_kind *const *rows = kube_kinds_rows(kinds, &count);
    struct json_writer w;
    if (!api_version.len)
        return ST_NOT_FOUND;
    json_writer_init(&w, to);
    json_begin_object(&w);
    json_key(&w, "openapi");
    json_text(&w, "3.0.0");
    json_key(&w, "info");
    json_raw(&w, SLICE_LITERAL("{\"title\":\"Kubernetes CRD Swagger\",\"version\":\"v0.1.0\"}"));
    json_key(&w, "paths");
    json_begin_object(&w);
    for (size_t i = 0; i < count; i++) {
        if (!is_of(rows[i], api_version))
            continue;
        found++;
        kube_openapi_write_paths(&w, rows[i]);
    }
    json_end_object(&w);
    if (!found)
        return ST_NOT_FOUND;
    json_key(&w, "components");
    json_begin_object(&w);
    json_key(&w, "schemas");
    json_begin_object(&w);
    TRY(write_schemas(kinds, api_version, &w));
    for (int i = 0; i < 3; i++)
        json_end_object(&w);
    return json_writer_finish(&w);
}
