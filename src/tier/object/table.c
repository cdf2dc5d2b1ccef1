#include "tier/object/table.h"

#include "kube/call/table/table.h"

enum status tier_append_table_head(const struct kube_shaping *shaping,
                                   const struct tier_list_meta *meta, struct buf *to)
{
    TRY(buf_append_text(to, "{"));
    TRY(kube_shape_list_head(shaping, to));
    TRY(tier_append_list_meta(meta, to));
    TRY(buf_append_text(to, ","));
    return kube_shape_list_items(shaping, to);
}

/* The object has its version, and gets no other. */
enum status tier_append_row(const struct kube_shaping *shaping, struct slice json, struct buf *to)
{
    struct kube_object object;
    TRY(kube_object_parse(json, &object));
    return kube_shape_item(shaping, &object, 0, to);
}

static enum status append_table(const struct kube_shaping *shaping, struct slice json, bool columns,
                                struct buf *to)
{
    struct kube_object object;
    struct slice version;
    TRY(kube_object_parse(json, &object));
    if (!kube_object_field(&object, SLICE_LITERAL("metadata.resourceVersion"), &version))
        return ST_MALFORMED;
    TRY(buf_append_text(to, "{"));
    TRY(kube_shape_list_head(shaping, to));
    TRY(buf_append_format(to, "\"metadata\":{\"resourceVersion\":\"%.*s\"},\"columnDefinitions\":",
                          SLICE_ARGS(version)));
    TRY(columns ? kube_table_columns(shaping->kind, to) : buf_append_text(to, "null"));
    TRY(buf_append_text(to, ",\"rows\":["));
    TRY(kube_shape_item(shaping, &object, 0, to));
    return buf_append_text(to, "]}");
}

enum status tier_append_table_event(const struct kube_shaping *shaping, enum tier_event event,
                                    struct slice json, bool columns, struct buf *to)
{
    AUTO(buf_fini) struct buf table = {0};
    uint8_t head[TIER_EVENT_HEAD_BYTES];
    TRY(append_table(shaping, json, columns, &table));
    size_t head_bytes = tier_event_head(TIER_JSON, event, table.len, head);
    TRY(buf_append(to, slice_of(head, head_bytes)));
    TRY(buf_append(to, buf_slice(&table)));
    return buf_append(to, tier_event_tail(TIER_JSON));
}
