#include "kube/server/custom_openapi.h"

#include "base/crc32c.h"
#include "base/xalloc.h"
#include "codec/json/scanner.h"
#include "kube/server/schema_v2.h"
#include "kube/types/schema/openapi.h"

#include <stdio.h>
#include <stdlib.h>

#define GVK "x-kubernetes-group-version-kind"

enum { MODEL_NAME_BYTES = 512, GVK_BYTES = 640 };

/* Whether the kind is of "group/version"; empty: always. */
static bool is_of(const struct kube_kind *kind, struct slice api_version)
{
    struct slice group = slice_from_text(kind->group), version = slice_from_text(kind->version);
    if (!(kind->flags & KUBE_CUSTOM))
        return false;
    return !api_version.len ||
           (api_version.len == group.len + 1 + version.len && api_version.ptr[group.len] == '/' &&
            slice_has_prefix(api_version, group) &&
            slice_equal(slice_sub(api_version, group.len + 1, version.len), version));
}

static uint32_t hash_add(uint32_t hash, const struct kube_kind *kind)
{
    const struct kube_definition *d = kube_custom_of(kind)->definition;
    hash = crc32c(hash, d->name);
    return crc32c(hash, slice_of(&d->spec_revision, sizeof(d->spec_revision)));
}

static bool is_builtin_group(struct slice api_version)
{
    size_t count;
    const struct kube_kind *own = kube_builtin_kinds(&count);
    const uint8_t *slash = api_version.len ? memchr(api_version.ptr, '/', api_version.len) : NULL;
    struct slice group = slice_sub(api_version, 0, slash ? (size_t)(slash - api_version.ptr) : 0);
    for (size_t i = 0; i < count; i++)
        if (slice_is(group, own[i].group))
            return api_version.len > 0;
    return false;
}

static bool is_of_other_group(const struct kube_kind *kind)
{
    const struct kube_custom *custom = kube_custom_of(kind);
    return custom && !custom->definition->builtin_group;
}

const char *kube_custom_openapi_hash(struct kube_kinds *kinds, struct slice api_version,
                                     char text[KUBE_CUSTOM_HASH_BYTES])
{
    size_t count;
    const struct kube_kind *const *rows = kube_kinds_rows(kinds, &count);
    uint32_t hash = crc32c(0, slice_from_text(kube_openapi_hash()));
    bool any = !api_version.len, builtin = is_builtin_group(api_version);
    for (size_t i = 0; i < count; i++) {
        if (builtin && is_of_other_group(rows[i]))
            break; /* rows of groups with built-in kinds come first */
        if (!is_of(rows[i], api_version))
            continue;
        any = true;
        hash = hash_add(hash, rows[i]);
    }
    snprintf(text, KUBE_CUSTOM_HASH_BYTES, "%08X", hash);
    return any ? text : kube_openapi_hash();
}

static bool is_builtin_version(const struct kube_kind *kind)
{
    size_t count;
    if (!kube_custom_of(kind)->definition->builtin_group)
        return false;
    const struct kube_kind *own = kube_builtin_kinds(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(own[i].group, kind->group) == 0 && strcmp(own[i].version, kind->version) == 0)
            return true;
    return false;
}

/* Kinds of the same version are adjacent. */
void kube_custom_openapi_index(struct kube_kinds *kinds, struct json_writer *w)
{
    size_t count;
    const struct kube_kind *const *rows = kube_kinds_rows(kinds, &count);
    for (size_t i = 0, next; i < count; i = next) {
        uint32_t hash = crc32c(0, slice_from_text(kube_openapi_hash()));
        for (next = i; next < count && strcmp(rows[i]->group, rows[next]->group) == 0 &&
                       strcmp(rows[i]->version, rows[next]->version) == 0;
             next++)
            if (rows[next]->flags & KUBE_CUSTOM)
                hash = hash_add(hash, rows[next]);
        if (rows[i]->flags & KUBE_CUSTOM && !is_builtin_version(rows[i])) {
            char version[KUBE_API_VERSION_BYTES], text[KUBE_API_VERSION_BYTES + 64];
            snprintf(text, sizeof(text), "apis/%s", kube_kind_api_version(rows[i], version));
            json_member_object(w, text);
            json_key(w, "serverRelativeURL");
            snprintf(text, sizeof(text), "/openapi/v3/apis/%s?hash=%08X", version, hash);
            json_text(w, text);
            json_end_object(w);
        }
    }
}

/* -- Schemas -- */

/* "com.example.v1.Lamp": the group is reversed. */
static const char *model_name(const struct kube_kind *kind, char text[MODEL_NAME_BYTES])
{
    size_t len = 0, end = strlen(kind->group);
    for (size_t at = end; at-- > 0 && len < MODEL_NAME_BYTES / 2;) {
        if (at > 0 && kind->group[at - 1] != '.')
            continue;
        len += (size_t)snprintf(text + len, MODEL_NAME_BYTES - len, "%.*s.", (int)(end - at),
                                kind->group + at);
        end = at ? at - 1 : 0;
    }
    snprintf(text + len, MODEL_NAME_BYTES - len, "%s.%s", kind->version, kind->kind);
    return text;
}

#define REF_V3(name) "\"allOf\":[{\"$ref\":\"#/components/schemas/" name "\"}]"
#define REF_V2(name) "\"$ref\":\"#/definitions/" name "\""
/* The members of "properties" that every object has. */
#define OWN_FIELDS(meta) \
    "\"apiVersion\":{\"type\":\"string\"},\"kind\":{\"type\":\"string\"},\"metadata\":{" meta "}"

/* Writes the member that names the kind of a schema. */
static void write_gvk(const struct kube_kind *kind, const char *name, char text[GVK_BYTES])
{
    snprintf(text, GVK_BYTES,
             "\"" GVK "\":[{\"group\":\"%.400s\",\"kind\":\"%.64s\",\"version\":\"%.64s\"}]",
             kind->group, name, kind->version);
}

/* Skips a key and its value; *ret_member is their text. */
static bool skip_member(struct json_scanner *scanner, struct slice *ret_member)
{
    const uint8_t *begin = scanner->raw.ptr;
    if (!json_skip(scanner, JSON_KEY))
        return false;
    *ret_member = slice_of(begin, (size_t)(scanner->at - begin));
    return true;
}

static bool is_key(struct slice raw, const char *name)
{
    return raw.len == strlen(name) + 2 && memcmp(raw.ptr + 1, name, raw.len - 2) == 0;
}

/* The fields of the schema and those that every object has. The text was written by
 * json_tree_write, so that a key has one spelling and occurs once. */
static enum status append_fields(struct json_scanner *scanner, struct buf *to)
{
    struct slice member;
    enum json_token token = json_next(scanner);
    TRY(buf_append_text(to, "\"properties\":{" OWN_FIELDS(REF_V3(KUBE_OPENAPI_META))));
    if (token != JSON_OBJECT && !json_skip(scanner, token))
        return ST_MALFORMED;
    while (token == JSON_OBJECT && json_next(scanner) == JSON_KEY) {
        struct slice key = scanner->raw;
        if (!skip_member(scanner, &member))
            return ST_MALFORMED;
        if (is_key(key, "apiVersion") || is_key(key, "kind") || is_key(key, "metadata"))
            continue;
        TRY(buf_append_text(to, ","));
        TRY(buf_append(to, member));
    }
    return buf_append_text(to, "}");
}

static enum status append_members(struct json_scanner *scanner, struct buf *to)
{
    struct slice member;
    bool has_fields = false;
    while (json_next(scanner) == JSON_KEY) {
        struct slice key = scanner->raw;
        if (is_key(key, "properties")) {
            has_fields = true;
            TRY(append_fields(scanner, to));
        } else if (!skip_member(scanner, &member)) {
            return ST_MALFORMED;
        } else if (is_key(key, GVK)) {
            continue;
        } else {
            TRY(buf_append(to, member));
        }
        TRY(buf_append_text(to, ","));
    }
    if (scanner->fault)
        return ST_MALFORMED;
    return has_fields
               ? ST_OK
               : buf_append_text(to, "\"properties\":{" OWN_FIELDS(REF_V3(KUBE_OPENAPI_META)) "},");
}

/* Made from pieces of the text: parsing a text of 1 MB into a tree would take ten times as long. */
static enum status write_schema(const struct kube_kind *kind, struct json_writer *w)
{
    AUTO(buf_fini) struct buf text = {0};
    char name[MODEL_NAME_BYTES], gvk[GVK_BYTES];
    struct json_scanner scanner;
    struct slice json = pool_schema_text(kube_custom_of(kind)->schema);
    json_scanner_init(&scanner, json);
    if (!json.len || json_next(&scanner) != JSON_OBJECT)
        return ST_OK;
    TRY(buf_reserve(&text, json.len + sizeof(OWN_FIELDS(REF_V3(KUBE_OPENAPI_META))) + GVK_BYTES));
    TRY(buf_append_text(&text, "{"));
    TRY(append_members(&scanner, &text));
    write_gvk(kind, kind->kind, gvk);
    TRY(buf_append_text(&text, gvk));
    TRY(buf_append_text(&text, "}"));
    json_member_raw(w, model_name(kind, name), buf_slice(&text));
    return ST_OK;
}

/* -- Documents -- */

enum document_phase { PHASE_PATHS, PHASE_SCHEMAS, PHASE_DONE };

struct kube_custom_openapi {
    struct kube_kinds *kinds; /* a reference */
    bool v2;                  /* in the form of version 2 */
    struct buf version;
    enum document_phase phase;
    size_t row; /* the next one of kinds */
    struct json_writer writer;
    struct buf piece; /* which is being sent */
    size_t read;      /* bytes of it that were sent */
};

/* The next kind of the document, or NULL. */
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

/* A schema that is not known, for instance because it was written through etcd's API and cannot be
 * read: kubectl leaves such objects to the server. */
#define ANY_OBJECT "{\"type\":\"object\","
#define LIST_ITEMS(item) ",\"items\":{\"type\":\"array\",\"items\":{" item "}}"

static enum status write_schema_v2(const struct kube_kind *kind, struct json_writer *w)
{
    AUTO(buf_fini) struct buf text = {0};
    char name[MODEL_NAME_BYTES], gvk[GVK_BYTES];
    struct slice schema = pool_schema_text(kube_custom_of(kind)->schema);
    write_gvk(kind, kind->kind, gvk);
    enum status status =
        schema_v2_append(schema, OWN_FIELDS(REF_V2(KUBE_OPENAPI_META)), gvk, &text);
    if (status == ST_MALFORMED) {
        text.len = 0;
        TRY(buf_append_text(&text, ANY_OBJECT));
        TRY(buf_append_text(&text, gvk));
        status = buf_append_text(&text, "}");
    }
    TRY(status);
    json_member_raw(w, model_name(kind, name), buf_slice(&text));
    return ST_OK;
}

static enum status write_list_schema(const struct kube_kind *kind, bool v2, struct json_writer *w)
{
    AUTO(buf_fini) struct buf text = {0};
    char item[MODEL_NAME_BYTES], name[MODEL_NAME_BYTES], gvk[GVK_BYTES];
    struct kube_kind list = *kind;
    list.kind = kind->list_kind;
    write_gvk(kind, kind->list_kind, gvk);
    TRY(buf_append_text(&text, "{\"type\":\"object\",\"required\":[\"items\"],\"properties\":{"));
    TRY(buf_append_text(&text, v2 ? OWN_FIELDS(REF_V2(KUBE_OPENAPI_LIST_META))
                                  : OWN_FIELDS(REF_V3(KUBE_OPENAPI_LIST_META))));
    TRY(buf_append_format(&text, v2 ? LIST_ITEMS(REF_V2("%s")) : LIST_ITEMS(REF_V3("%s")),
                          model_name(kind, item)));
    TRY(buf_append_text(&text, "},"));
    TRY(buf_append_text(&text, gvk));
    TRY(buf_append_text(&text, "}"));
    json_member_raw(w, model_name(&list, name), buf_slice(&text));
    return ST_OK;
}

static enum status write_one(const struct kube_custom_openapi *d, const struct kube_kind *kind,
                             bool schema, struct json_writer *w)
{
    if (!schema) {
        kube_openapi_write_paths(w, kind, d->v2 ? KUBE_OPENAPI_V2 : KUBE_OPENAPI_V3);
        return w->status;
    }
    TRY(d->v2 ? write_schema_v2(kind, w) : write_schema(kind, w));
    TRY(write_list_schema(kind, d->v2, w));
    return w->status;
}

enum status kube_custom_openapi_write(void *ctx, bool schemas, struct json_writer *w,
                                      bool *ret_more)
{
    struct kube_custom_openapi *d = ctx;
    const struct kube_kind *kind = next_kind(d);
    *ret_more = kind;
    if (!kind)
        d->row = 0;
    return kind ? write_one(d, kind, schemas, w) : ST_OK;
}

static enum status make_piece(struct kube_custom_openapi *d)
{
    const struct kube_kind *kind = next_kind(d);
    if (kind)
        return write_one(d, kind, d->phase == PHASE_SCHEMAS, &d->writer);
    d->row = 0;
    if (d->phase++ == PHASE_SCHEMAS) {
        TRY(kube_openapi_write_meta(&d->writer));
        for (int i = 0; i < 3; i++)
            json_end_object(&d->writer);
        return json_writer_finish(&d->writer);
    }
    json_end_object(&d->writer);
    json_member_object(&d->writer, "components");
    json_member_object(&d->writer, "schemas");
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

struct kube_custom_openapi *kube_custom_openapi_open_v2(struct kube_kinds *kinds)
{
    struct kube_custom_openapi *d = xcalloc(1, sizeof(*d));
    d->kinds = kube_kinds_ref(kinds);
    d->v2 = true;
    return d;
}

enum status kube_custom_openapi_open(struct kube_kinds *kinds, struct slice api_version,
                                     struct kube_custom_openapi **ret_document)
{
    struct kube_custom_openapi *d = xcalloc(1, sizeof(*d));
    d->kinds = kube_kinds_ref(kinds);
    json_writer_init(&d->writer, &d->piece);
    json_begin_object(&d->writer);
    json_member_text(&d->writer, "openapi", "3.0.0");
    json_member_raw(&d->writer, "info",
                    SLICE_LITERAL("{\"title\":\"Kubernetes CRD Swagger\",\"version\":\"v0.1.0\"}"));
    json_member_object(&d->writer, "paths");
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
