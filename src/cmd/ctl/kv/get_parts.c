#include "cmd/ctl/kv/get_parts.h"

#include "base/xalloc.h"

/* The answer so far. */
struct parts {
    struct ctl *ctl;
    const struct ctl_shape *shape;
    void (*write)(struct ctl *ctl, const void *response); /* NULL: the parts are kept */
    struct pb_range_response all;                         /* the kept ones; kvs is owned */
    size_t capacity;
    struct pb_response_header header;
    bool any; /* key-values have come */
};

static bool is_written_by_key(const struct ctl *ctl)
{
    return ctl->globals.format == CTL_SIMPLE || ctl->globals.format == CTL_JSONL;
}

/* Pages follow the order of the keys, and a limit is the size of a page. */
bool get_in_parts(const struct ctl *ctl, const struct pb_range_request *request)
{
    const struct get_flags *given = ctl->flags;
    bool is_filtered = request->min_mod_revision || request->max_mod_revision ||
                       request->min_create_revision || request->max_create_revision;
    bool is_ordered = request->sort_order || request->sort_target;
    return given->stream ||
           (!ctl_is_etcdctl(ctl) && is_written_by_key(ctl) && request->range_end.len > 0 &&
            !request->limit && !request->count_only && !is_filtered && !is_ordered);
}

static struct slice keep_bytes(struct ctl *ctl, struct slice bytes)
{
    struct slice copy = {0};
    enum status status = arena_dup(ctl->arena, bytes, &copy);
    xalloc_check(status == ST_OK ? ctl : NULL, bytes.len);
    return copy;
}

static void keep(struct parts *parts, const struct pb_range_response *part)
{
    struct pb_range_response *all = &parts->all;
    if (all->kvs_count + part->kvs_count > parts->capacity) {
        parts->capacity = size_max(2 * parts->capacity, all->kvs_count + part->kvs_count);
        all->kvs = xrealloc(all->kvs, parts->capacity * sizeof(*all->kvs));
    }
    for (size_t i = 0; i < part->kvs_count; i++) {
        struct pb_key_value *kv = &all->kvs[all->kvs_count++];
        *kv = part->kvs[i];
        kv->key = keep_bytes(parts->ctl, kv->key);
        kv->value = keep_bytes(parts->ctl, kv->value);
    }
    if (part->header) {
        parts->header = *part->header;
        all->header = &parts->header;
    }
    all->more = all->more || part->more;
    all->count = part->count ? part->count : all->count;
}

static int on_part(vigil_call *call, const vigil_range_response *part, void *user)
{
    struct parts *parts = user;
    const struct pb_range_response *message = (const void *)part; /* client/api/layout.c */
    parts->any |= message->kvs_count > 0;
    if (!parts->write)
        keep(parts, message);
    else
        parts->write(parts->ctl, message);
    if (ferror(parts->ctl->out))
        vigil_call_cancel(call);
    return VIGIL_PART_CONTINUE;
}

static void set_request(vigil_range_request *to, const struct pb_range_request *from)
{
    vigil_range_request_init(to);
    to->key = vigil_bytes_of(from->key.ptr, from->key.len);
    to->range_end = vigil_bytes_of(from->range_end.ptr, from->range_end.len);
    to->limit = from->limit;
    to->revision = from->revision;
    to->sort_order = from->sort_order;
    to->sort_target = from->sort_target;
    to->serializable = from->serializable;
    to->keys_only = from->keys_only;
    to->count_only = from->count_only;
    to->min_mod_revision = from->min_mod_revision;
    to->max_mod_revision = from->max_mod_revision;
    to->min_create_revision = from->min_create_revision;
    to->max_create_revision = from->max_create_revision;
}

int get_parts_run(struct ctl *ctl, const struct pb_range_request *request,
                  const struct ctl_shape *shape, bool *ret_any)
{
    const struct get_flags *given = ctl->flags;
    struct parts parts = {.ctl = ctl, .shape = shape};
    if (is_written_by_key(ctl))
        parts.write = ctl->globals.format == CTL_SIMPLE ? shape->simple : shape->jsonl;
    int code;
    vigil_client *client = ctl_client(ctl, &code);
    if (!client)
        return code;
    vigil_range_request range;
    set_request(&range, request);
    vigil_call *call = given->stream ? vigil_range_stream(client, &range, on_part, &parts)
                                     : vigil_range_pages(client, &range, on_part, &parts);
    xalloc_check(call, sizeof(range));
    bool failed = vigil_call_run(call) != VIGIL_OK && !ferror(ctl->out);
    code = failed ? ctl_fail_with(ctl, vigil_call_error(call)) : CTL_OK;
    vigil_call_free(call);
    if (code == CTL_OK && !parts.write)
        code = ctl_print(ctl, shape, &parts.all);
    free(parts.all.kvs);
    *ret_any = parts.any;
    return code;
}
