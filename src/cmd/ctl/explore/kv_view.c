#include "cmd/ctl/explore/kv_view.h"

#include "base/xalloc.h"
#include "cmd/ctl/decode/safe_text.h"
#include "codec/pb/rpc.pb.h"

#include <inttypes.h>

enum { KEY_COLUMNS_MAX = 120, VALUE_COLUMNS_MAX = 60 };

/* -- JSON -- */

void kv_view_put_line(FILE *to, const struct json_writer *writer)
{
    xalloc_check(json_writer_finish(writer) == ST_OK ? to : NULL, writer->out->len);
    fprintf(to, "%.*s\n", SLICE_ARGS(buf_slice(writer->out)));
}

void kv_view_put_members(struct json_writer *writer, enum decode_kind decode, const vigil_kv *kv)
{
    decode_put_member(writer, "key", DECODE_TEXT, slice_of(kv->key.data, kv->key.size));
    decode_put_member(writer, "value", decode, slice_of(kv->value.data, kv->value.size));
    json_member_i64(writer, "create_revision", kv->create_revision);
    json_member_i64(writer, "mod_revision", kv->mod_revision);
    json_member_i64(writer, "version", kv->version);
    if (kv->lease)
        json_member_i64(writer, "lease", kv->lease);
}

static vigil_kv kv_of(const struct pb_key_value *kv)
{
    return (vigil_kv){
        .key = vigil_bytes_of(kv->key.ptr, kv->key.len),
        .create_revision = kv->create_revision,
        .mod_revision = kv->mod_revision,
        .version = kv->version,
        .value = vigil_bytes_of(kv->value.ptr, kv->value.len),
        .lease = kv->lease,
    };
}

void kv_view_range_jsonl(struct ctl *ctl, const void *response)
{
    const struct pb_range_response *range = response;
    AUTO(buf_fini) struct buf line = {0};
    for (size_t i = 0; i < range->kvs_count; i++) {
        struct json_writer writer;
        vigil_kv kv = kv_of(&range->kvs[i]);
        line.len = 0;
        json_writer_init(&writer, &line);
        json_begin_object(&writer);
        kv_view_put_members(&writer, (enum decode_kind)ctl->globals.decode, &kv);
        json_end_object(&writer);
        kv_view_put_line(ctl->out, &writer);
    }
}

/* -- Tables -- */

static enum status append_text_of(struct buf *to, struct arena *arena, const struct json_node *node)
{
    struct slice text;
    TRY(json_node_text(node, arena, &text));
    return safe_text_append(to, text, SAFE_ONE_LINE);
}

/* "Pod default/web" */
static enum status append_object(struct buf *to, struct arena *arena, const struct json_node *tree)
{
    const struct json_node *space = json_node_path(tree, "metadata.namespace");
    const struct json_node *name = json_node_path(tree, "metadata.name");
    TRY(append_text_of(to, arena, json_node_named(tree, "kind")));
    if (name) {
        TRY(buf_append_text(to, " "));
        if (space) {
            TRY(append_text_of(to, arena, space));
            TRY(buf_append_text(to, "/"));
        }
        TRY(append_text_of(to, arena, name));
    }
    return ST_OK;
}

enum status kv_view_summary(struct buf *to, enum decode_kind decode, struct slice value)
{
    struct arena arena;
    struct decoded decoded;
    AUTO(buf_fini) struct buf text = {0};
    decode_arena_init(&arena);
    decode_value(&arena, decode_resolve(decode, true), value, &decoded);
    enum status status = decoded.form == DECODED_YAML
                             ? append_object(&text, &arena, decoded.tree)
                             : buf_append(&text, slice_of(value.ptr, size_min(value.len, 4096)));
    arena_fini(&arena);
    TRY(status);
    return safe_text_append_short(to, buf_slice(&text), VALUE_COLUMNS_MAX);
}

static void add_text(struct ctl_table *table, struct buf *text, enum status status)
{
    status = status == ST_OK ? buf_append(text, slice_of("", 1)) : status;
    xalloc_check(status == ST_OK ? table : NULL, text->len);
    ctl_table_add(table, "%s", (const char *)text->ptr);
    text->len = 0;
}

static void add_row(struct ctl *ctl, struct ctl_table *table, const struct pb_key_value *kv,
                    struct buf *text)
{
    add_text(table, text, safe_text_append_short(text, kv->key, KEY_COLUMNS_MAX));
    ctl_table_add(table, "%" PRId64, kv->mod_revision);
    ctl_table_add(table, "%" PRId64, kv->version);
    ctl_table_add(table, "%zu", kv->value.len);
    if (kv->lease)
        ctl_table_add(table, "%" PRIx64, (uint64_t)kv->lease);
    else
        ctl_table_add(table, "%s", "");
    add_text(table, text, kv_view_summary(text, (enum decode_kind)ctl->globals.decode, kv->value));
}

void kv_view_range_table(struct ctl *ctl, const void *response)
{
    static const char *const heads[] = {"KEY", "REVISION", "VERSION", "SIZE", "LEASE", "VALUE"};
    const struct pb_range_response *range = response;
    struct ctl_table *table = ctl_table_new(ctl, heads, COUNT_OF(heads));
    AUTO(buf_fini) struct buf text = {0};
    for (size_t i = 0; i < range->kvs_count; i++)
        add_row(ctl, table, &range->kvs[i], &text);
    ctl_table_write(table);
}
