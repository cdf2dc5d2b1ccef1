/* Ranges in parts: as a stream of one call, or as pages that are requested one after the other. */
#include "base/buf.h"
#include "client/api/kv.h"
#include "client/api/strip.h"
#include "client/call/parts.h"

enum { PAGE_KEYS_DEFAULT = 1000 };

static int call_back(struct parts_call *parts, const void *part)
{
    return parts->fn.range(&parts->call, part, parts->user);
}

/* -- Stream -- */

static void strip_stream(void *response, size_t prefix_len)
{
    struct pb_range_stream_response *stream = response;
    if (stream->range_response)
        strip_range(stream->range_response, prefix_len);
}

static const void *open_stream(struct parts_call *parts, void *response)
{
    (void)parts;
    return ((struct pb_range_stream_response *)response)->range_response;
}

static const struct client_method range_stream_method = {
    .path = "/etcdserverpb.KV/RangeStream",
    .request = &pb_range_request_table,
    .response = &pb_range_stream_response_table,
    .reads = true,
    .strip = strip_stream,
    .parts = &parts_stream_ops,
};
static const struct parts_hooks stream_hooks = {.open = open_stream, .call_back = call_back};

vigil_call *vigil_range_stream(vigil_client *client, const vigil_range_request *request,
                               vigil_range_fn fn, void *user)
{
    struct pb_range_request message;
    AUTO(prefixed_range_fini) struct prefixed_range range = {0};
    kv_request_copy(&message, sizeof(message), request);
    if (kv_request_prefix(client, &message.key, &message.range_end, &range) != ST_OK)
        return NULL;
    struct parts_call *parts = parts_call_new(client, &range_stream_method, &stream_hooks,
                                              sizeof(struct parts_call), user);
    if (!parts)
        return NULL;
    parts->fn.range = fn;
    return parts_call_with(parts, &message);
}

/* -- Pages -- */

struct pages_call {
    struct parts_call parts; /* first */
    /* Request of the next page; its key and end are in the buffers. */
    struct pb_range_request request;
    struct buf key, end;
    bool last; /* the page that was delivered last is the last one */
};

static struct pages_call *pages_of(struct parts_call *parts)
{
    return CONTAINER_OF(parts, struct pages_call, parts);
}

static void release_pages(struct parts_call *parts)
{
    struct pages_call *pages = pages_of(parts);
    buf_fini(&pages->key);
    buf_fini(&pages->end);
}

static enum status encode_request(struct pages_call *pages)
{
    pages->request.key = buf_slice(&pages->key);
    pages->request.range_end = buf_slice(&pages->end);
    return client_call_encode(&pages->parts.call, &pages->request);
}

/* After a page was delivered. */
static void go_on(struct parts_call *parts)
{
    struct pages_call *pages = pages_of(parts);
    if (pages->last) {
        parts->call.response = &parts->result;
        client_call_complete(&parts->call);
        return;
    }
    enum status status = encode_request(pages);
    if (status == ST_OK)
        client_call_continue(&parts->call);
    else
        client_call_stop_for(&parts->call, status);
}

/* The key of the next page is the first one after the last key of this page. A server that does not
 * advance would be asked forever. */
static enum status advance(struct pages_call *pages, const struct pb_range_response *page)
{
    AUTO(buf_fini) struct buf next = {0};
    if (page->kvs_count == 0)
        return ST_MALFORMED;
    TRY(buf_append(&next, pages->parts.call.client->prefix));
    TRY(buf_append(&next, page->kvs[page->kvs_count - 1].key)); /* without the prefix */
    TRY(buf_append(&next, slice_of("", 1)));
    if (slice_compare(buf_slice(&next), buf_slice(&pages->key)) <= 0)
        return ST_MALFORMED;
    struct buf old = pages->key;
    pages->key = next;
    next = old;
    return ST_OK;
}

static enum status take_page(struct pages_call *pages, const struct pb_range_response *page)
{
    struct parts_call *parts = &pages->parts;
    if (!page->header)
        return ST_MALFORMED;
    if (!parts->result.header) {
        parts_note_header(parts, page);
        if (pages->request.revision <= 0)
            pages->request.revision = page->header->revision;
    }
    pages->last = !page->more;
    return pages->last ? ST_OK : advance(pages, page);
}

static void deliver_page(struct pages_call *pages)
{
    struct parts_call *parts = &pages->parts;
    enum status status = take_page(pages, parts->call.response);
    if (status != ST_OK) {
        client_call_stop_for(&parts->call, status);
        return;
    }
    parts_deliver(parts, parts->call.response);
    client_call_drop_response(&parts->call);
    if (parts->paused)
        client_call_hold(&parts->call);
    else
        go_on(parts);
}

static void end_page(struct vigil_call *call)
{
    struct pages_call *pages = CONTAINER_OF(call, struct pages_call, parts.call);
    if (call->operation.error.code == VIGIL_OK) {
        deliver_page(pages);
    } else if (call->operation.error.code == VIGIL_ERROR_TOO_LARGE && pages->request.limit > 1) {
        pages->request.limit /= 2;
        go_on(&pages->parts);
    } else {
        client_call_complete(call);
    }
}

static const struct client_part_ops pages_ops = {.end = end_page, .release = parts_release};
static const struct client_method pages_method = {
    .path = "/etcdserverpb.KV/Range",
    .request = &pb_range_request_table,
    .response = &pb_range_response_table,
    .reads = true,
    .strip = strip_range,
    .parts = &pages_ops,
};
static const struct parts_hooks pages_hooks = {
    .call_back = call_back,
    .release = release_pages,
    .resumed = go_on,
};

/* The keys of a page are requested by their order, and a filter or a limit needs no other. */
static void settle_order(struct pages_call *pages)
{
    struct pb_range_request *request = &pages->request;
    if (request->sort_target != VIGIL_SORT_KEY || request->sort_order == VIGIL_SORT_DESCEND)
        pages->parts.call.invalid = "pages need the order of ascending keys";
    request->sort_order = VIGIL_SORT_NONE; /* the same, and etcd then reads no more than a page */
    if (request->limit <= 0)
        request->limit = PAGE_KEYS_DEFAULT;
}

static enum status set_range(struct pages_call *pages)
{
    struct pb_range_request *request = &pages->request;
    AUTO(prefixed_range_fini) struct prefixed_range range = {0};
    TRY(kv_request_prefix(pages->parts.call.client, &request->key, &request->range_end, &range));
    TRY(buf_append(&pages->key, request->key));
    TRY(buf_append(&pages->end, request->range_end));
    return ST_OK;
}

vigil_call *vigil_range_pages(vigil_client *client, const vigil_range_request *request,
                              vigil_range_fn fn, void *user)
{
    struct parts_call *parts =
        parts_call_new(client, &pages_method, &pages_hooks, sizeof(struct pages_call), user);
    if (!parts)
        return NULL;
    struct pages_call *pages = pages_of(parts);
    kv_request_copy(&pages->request, sizeof(pages->request), request);
    settle_order(pages);
    parts->fn.range = fn;
    if (set_range(pages) != ST_OK) {
        vigil_call_free(&parts->call);
        return NULL;
    }
    pages->request.key = buf_slice(&pages->key);
    pages->request.range_end = buf_slice(&pages->end);
    return parts_call_with(parts, &pages->request);
}
