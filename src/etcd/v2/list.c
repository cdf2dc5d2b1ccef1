/*
 * GET of a node: a file, or a directory with its content, which is read from the store as the
 * client reads the response. A range returns a directory before its content, so the open
 * directories are a stack.
 */
#include "base/clock.h"
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"
#include "etcd/v2/ancestors.h"
#include "etcd/v2/call.h"
#include "etcd/v2/handlers.h"

enum { SKIPPED_MAX = 1024 }; /* nodes that are examined in one turn without being shown */

/* A directory whose nodes are being written. */
struct open_dir {
    int64_t modified, created;
    bool has_nodes;
};

struct missing_node {
    struct v2_ancestors ancestors; /* first */
    struct v2_list *list;
};

struct v2_list {
    struct v2_call call; /* first */
    struct engine_range range;
    struct pb_range_request request;
    struct missing_node *missing; /* owned; NULL: the node exists */
    struct http_source source;
    struct buf piece; /* JSON not sent yet */
    size_t sent;
    bool finished; /* piece is the last */
    int64_t real_ns;
    size_t depth; /* the number of open directories */
    struct open_dir open[V2_DEPTH_MAX + 1];
};

static void list_fini(struct v2_call *call)
{
    struct v2_list *list = CONTAINER_OF(call, struct v2_list, call);
    engine_range_close(&list->range);
    buf_fini(&list->piece);
    free(list->missing);
}

struct v2_call *v2_list_new(void)
{
    struct v2_list *list = xcalloc(1, sizeof(*list));
    list->call.fini = list_fini;
    return &list->call;
}

/* -- Writing -- */

static enum status write_child(struct v2_list *list, const struct v2_node *node)
{
    struct open_dir *parent = &list->open[list->depth - 1];
    TRY(buf_append_text(&list->piece, parent->has_nodes ? "," : ",\"nodes\":["));
    parent->has_nodes = true;
    TRY(v2_node_json_open(&list->piece, node, false, list->real_ns));
    if (!node->dir || !list->call.form.recursive)
        return v2_node_json_close(&list->piece, node);
    list->open[list->depth++] =
        (struct open_dir){.modified = node->modified, .created = node->created};
    return ST_OK;
}

/* Closes directories until `depth` are open. */
static enum status close_to(struct v2_list *list, size_t depth)
{
    while (list->depth > depth) {
        struct open_dir *dir = &list->open[--list->depth];
        bool is_root = list->depth == 0 && list->call.key.depth == 0;
        struct v2_node node = {
            .key = is_root ? list->call.key.key : SLICE_EMPTY,
            .modified = dir->modified,
            .created = dir->created,
        };
        if (dir->has_nodes)
            TRY(buf_append_text(&list->piece, "]"));
        TRY(v2_node_json_close(&list->piece, &node));
    }
    return ST_OK;
}

/* One key-value of the range. Hidden nodes, nodes that are too deep, and other data are skipped. */
static enum status write_field(struct v2_list *list, struct slice field)
{
    struct v2_node node;
    size_t base = list->call.key.key.len;
    if (!v2_node_read(field, &node) || v2_node_is_expired(&node, list->real_ns))
        return ST_OK;
    size_t below = v2_key_depth_below(node.key, base);
    if (below == 0 || below > V2_DEPTH_MAX || v2_key_is_hidden(node.key, base) ||
        (below > 1 && !list->call.form.recursive))
        return ST_OK;
    TRY(close_to(list, size_min(list->depth, below)));
    return list->depth == below ? write_child(list, &node) : ST_OK;
}

/* Makes the next piece of JSON. ST_END: there are no more. */
static enum status next_piece(struct v2_list *list)
{
    struct slice field;
    list->piece.len = list->sent = 0;
    for (int i = 0; i < SKIPPED_MAX && list->piece.len == 0; i++) {
        if (engine_range_next(&list->range, &field)) {
            TRY(write_field(list, field));
            continue;
        }
        TRY(list->range.op.status);
        TRY(close_to(list, 0));
        TRY(buf_append_text(&list->piece, "}\n"));
        return ST_END;
    }
    /* A space between nodes changes nothing for the client, and lets a long turn end. */
    return list->piece.len ? ST_OK : buf_append_text(&list->piece, " ");
}

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct v2_list *list = CONTAINER_OF(source, struct v2_list, source);
    size_t n = 0;
    *ret_len = 0;
    for (;;) {
        size_t part = size_min(room - n, list->piece.len - list->sent);
        slice_copy(dst + n, slice_of(list->piece.ptr + list->sent, part));
        n += part;
        list->sent += part;
        *ret_len = n;
        if (list->sent == list->piece.len && list->finished)
            return HTTP_FILL_DONE;
        if (n == room)
            return HTTP_FILL_MORE;
        enum status status = next_piece(list);
        list->finished = status == ST_END;
        if (status != ST_OK && status != ST_END) {
            http_abort(list->call.exchange);
            return HTTP_FILL_DONE;
        }
    }
}

/* -- Reading -- */

static void missing_done(struct engine_op *op)
{
    struct missing_node *missing = CONTAINER_OF(op, struct missing_node, ancestors.write.op);
    struct v2_list *list = missing->list;
    struct v2_ancestors *ancestors = &missing->ancestors;
    enum status status = v2_ancestors_take(ancestors, list->real_ns);
    if (!v2_call_done(&list->call))
        return;
    if (status != ST_OK) {
        v2_fail_status(&list->call, status);
        return;
    }
    size_t depth = list->call.key.depth;
    size_t at = size_min(v2_ancestors_first_gap(ancestors, depth), depth);
    v2_fail_key(&list->call,
                at < depth && ancestors->nodes[at].modified ? V2_NOT_DIR : V2_KEY_NOT_FOUND,
                v2_key_part(&list->call.key, at), ancestors->revision);
}

/* The node does not exist: finds which part of its path is missing. */
static void find_missing(struct v2_list *list)
{
    list->missing = xcalloc(1, sizeof(*list->missing));
    list->missing->list = list;
    list->missing->ancestors.write.op.done = missing_done;
    list->missing->ancestors.write.op.arena = &list->call.arena;
    v2_call_start(&list->call);
    if (v2_ancestors_start(list->call.api->shard, &list->missing->ancestors, &list->call.key) ==
        ST_OK)
        return;
    if (v2_call_done(&list->call))
        v2_fail_status(&list->call, ST_NOMEM);
}

static enum status write_head(struct v2_list *list, const struct v2_node *node)
{
    TRY(buf_append_text(&list->piece, "{\"action\":\"get\",\"node\":"));
    TRY(v2_node_json_open(&list->piece, node, false, list->real_ns));
    if (node->dir) {
        list->open[list->depth++] =
            (struct open_dir){.modified = node->modified, .created = node->created};
        return ST_OK;
    }
    list->finished = true;
    TRY(v2_node_json_close(&list->piece, node));
    return buf_append_text(&list->piece, "}\n");
}

static void answer(struct v2_list *list, const struct v2_node *node)
{
    struct v2_call *call = &list->call;
    enum status status = write_head(list, node);
    if (status != ST_OK) {
        v2_fail_status(call, status);
    } else if (v2_add_index(call, list->range.op.revision)) {
        if (list->finished) {
            http_respond(call->exchange, 200, SLICE_LITERAL("application/json"),
                         buf_slice(&list->piece));
            return;
        }
        list->source.fill = fill;
        http_make_bulk(call->exchange);
        http_begin(call->exchange, 200, SLICE_LITERAL("application/json"));
        http_set_source(call->exchange, &list->source);
    }
}

static void range_done(struct engine_op *op)
{
    struct v2_list *list = CONTAINER_OF(op, struct v2_list, range.op);
    struct v2_node node = {.key = list->call.key.key, .dir = true};
    struct slice field;
    if (!v2_call_done(&list->call))
        return;
    list->real_ns = clock_real_ns(clock_system());
    if (op->status != ST_OK)
        v2_fail_status(&list->call, op->status);
    else if (list->call.key.depth == 0)
        answer(list, &node);
    else if (engine_range_next(&list->range, &field) && v2_node_read(field, &node) &&
             slice_equal(node.key, list->call.key.key) && !v2_node_is_expired(&node, list->real_ns))
        answer(list, &node);
    else
        find_missing(list);
}

void v2_list_run(struct v2_call *call)
{
    struct v2_list *list = CONTAINER_OF(call, struct v2_list, call);
    struct slice first = call->key.key, end;
    enum status status = v2_key_end(&call->arena, call->key.key, &end);
    if (status == ST_OK && call->key.depth == 0)
        status = v2_key_first_child(&call->arena, call->key.key, &first);
    if (status != ST_OK) {
        v2_fail_status(call, status);
        return;
    }
    list->request = (struct pb_range_request){.key = first, .range_end = end};
    list->range.op.done = range_done;
    list->range.op.arena = &call->arena;
    v2_call_start(call);
    engine_range_start(call->api->shard, &list->range, &list->request);
}
