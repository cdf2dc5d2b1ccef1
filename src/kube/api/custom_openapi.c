#include "kube/api/custom_openapi.h"

#include "base/crc32c.h"
#include "base/xalloc.h"
#include "kube/schema/openapi.h"

#include <stdio.h>
#include <stdlib.h>

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
    bool any = !api_version.len;
    for (size_t i = 0; i < count; i++) {
        if (!is_of(rows[i], api_version))
            continue;
        any = true;
        const struct kube_definition *d = kube_custom_of(rows[i])->definition;
        hash = crc32c(hash, d->name);
        hash = crc32c(hash, slice_of(&d->spec_revision, sizeof(d->spec_revision)));
    }
    snprintf(text, KUBE_CUSTOM_HASH_BYTES, "%08X", hash);
    return any ? text : kube_openapi_hash();
}

static bool is_builtin_version(const struct kube_kind *kind)
{
    size_t count;
    const struct kube_kind *own = kube_builtin_kinds(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(own[i].group, kind->group) == 0 && strcmp(own[i].version, kind->version) == 0)
            return true;
    return false;
}

void kube_custom_openapi_index(const struct kube_kinds *kinds, struct json_writer *w)
{
    size_t count;
    const struct kube_kind *const *rows = kube_kinds_rows(kinds, &count);
    char version[VERSION_BYTES], last[VERSION_BYTES] = "", text[VERSION_BYTES + 64];
    char hash[KUBE_CUSTOM_HASH_BYTES];
    for (size_t i = 0; i < count; i++) {
        if (!(rows[i]->flags & KUBE_CUSTOM) || strcmp(version_of(rows[i], version), last) == 0 ||
            is_builtin_version(rows[i]))
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

static enum status write_schema(struct arena *arena, const struct kube_kind *kind,
                                struct json_writer *w)
{
    AUTO(buf_fini) struct buf text = {0};
    char name[VERSION_BYTES];
    struct json_node *schema;
    struct error error;
    struct slice json = pool_schema_text(kube_custom_of(kind)->schema);
    if (!json.len)
        return ST_OK;
    TRY(json_tree_read(arena, json, &schema, &error));
    if (schema->type != JSON_TYPE_OBJECT)
        return ST_OK;
    TRY(add_meta(arena, kind, schema));
    TRY(json_tree_write(schema, &text));
    json_key(w, model_name(kind, name));
    json_raw(w, buf_slice(&text));
    return ST_OK;
}

/* -- Documents -- */

enum phase { PHASE_PATHS, PHASE_SCHEMAS, PHASE_DONE };

struct kube_custom_openapi {
    struct kube_kinds *kinds; /* counted */
    struct buf version;
    enum phase phase;
    size_t row; /* of kinds: the next one */
    struct json_writer writer;
    struct buf piece; /* that is sent now */
    size_t read;      /* how much of it was */
};

/* The next kind of the document; NULL: there is none. */
static const struct kube_kind *next_kind(struct kube_custom_openapi *d)
{
    size_t count;
    const struct kube_kind *const *rows = kube_kinds_rows(d->kinds, &count);
    while (d->row < count) {
        const struct kube_kind *kind = rows[d->row++];
        if (is_of(kind, buf_slice(&d->version)))
            return kind;
    }
    return NULL;
}

static void write_head(struct json_writer *w)
{
    json_begin_object(w);
    json_key(w, "openapi");
    json_text(w, "3.0.0");
    json_key(w, "info");
    json_raw(w, SLICE_LITERAL("{\"title\":\"Kubernetes CRD Swagger\",\"version\":\"v0.1.0\"}"));
    json_key(w, "paths");
    json_begin_object(w);
}

static void write_middle(struct json_writer *w)
{
    json_end_object(w);
    json_key(w, "components");
    json_begin_object(w);
    json_key(w, "schemas");
    json_begin_object(w);
}

static enum status write_tail(struct json_writer *w)
{
    TRY(kube_openapi_write_meta(w));
    for (int i = 0; i < 3; i++)
        json_end_object(w);
    return json_writer_finish(w);
}

static enum status write_one(const struct kube_kind *kind, bool schema, struct json_writer *w)
{
    struct arena arena;
    if (!schema) {
        kube_openapi_write_paths(w, kind);
        return w->status;
    }
    arena_init(&arena, NULL, 0, TREE_BYTES_MAX);
    enum status status = write_schema(&arena, kind, w);
    arena_fini(&arena);
    return status == ST_OK ? w->status : status;
}

enum status kube_custom_openapi_write(void *ctx, bool schemas, struct json_writer *w,
                                      bool *ret_more)
{
    struct kube_custom_openapi *d = ctx;
    const struct kube_kind *kind = next_kind(d);
    *ret_more = kind;
    if (!kind)
        d->row = 0;
    return kind ? write_one(kind, schemas, w) : ST_OK;
}

static enum status make_piece(struct kube_custom_openapi *d)
{
    const struct kube_kind *kind = next_kind(d);
    if (kind)
        return write_one(kind, d->phase == PHASE_SCHEMAS, &d->writer);
    d->row = 0;
    if (d->phase++ == PHASE_SCHEMAS)
        return write_tail(&d->writer);
    write_middle(&d->writer);
    return d->writer.status;
}

enum status kube_custom_openapi_read(struct kube_custom_openapi *d, uint8_t *dst, size_t room,
                                     size_t *ret_len)
{
    size_t len = 0;
    while (len < room && (d->read < d->piece.len || d->phase != PHASE_DONE)) {
        if (d->read == d->piece.len) {
            d->piece.len = d->read = 0;
            TRY(make_piece(d));
        }
        size_t n = size_min(room - len, d->piece.len - d->read);
        slice_copy(dst + len, slice_of(d->piece.ptr + d->read, n));
        d->read += n;
        len += n;
    }
    *ret_len = len;
    return ST_OK;
}

enum status kube_custom_openapi_open(struct kube_kinds *kinds, struct slice api_version,
                                     struct kube_custom_openapi **ret_document)
{
    struct kube_custom_openapi *d = xcalloc(1, sizeof(*d));
    d->kinds = kube_kinds_ref(kinds);
    json_writer_init(&d->writer, &d->piece);
    write_head(&d->writer);
    enum status status = buf_append(&d->version, api_version);
    if (status == ST_OK && (!api_version.len || !next_kind(d)))
        status = ST_NOT_FOUND;
    d->row = 0;
    if (status == ST_OK)
        *ret_document = d;
    else
        kube_custom_openapi_close(d);
    return status;
}

void kube_custom_openapi_close(struct kube_custom_openapi *d)
{
    if (!d)
        return;
    kube_kinds_unref(d->kinds);
    buf_fini(&d->version);
    buf_fini(&d->piece);
    free(d);
}
