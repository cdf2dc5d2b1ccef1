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

static void release_pages(struct parts_call *parts)
{
    struct pages_call *pages = CONTAINER_OF(parts, struct pages_call, parts);
    buf_fini(&pages->key);
    buf_fini(&pages->end);
}

/* After a page was delivered. */
static void go_on(struct parts_call *parts)
{
    struct pages_call *pages = CONTAINER_OF(parts, struct pages_call, parts);
    if (pages->last) {
        parts->call.response = &parts->result;
        client_call_complete(&parts->call);
        return;
    }
    pages->request.key = buf_slice(&pages->key);
    pages->request.range_end = buf_slice(&pages->end);
    enum status status = client_call_encode(&pages->parts.call, &pages->request);
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

static void deliver_page(struct pages_call *pages)
{
    struct parts_call *parts = &pages->parts;
    const struct pb_range_response *page = parts->call.response;
    enum status status = page->header ? ST_OK : ST_MALFORMED;
    if (status == ST_OK && !parts->result.header) {
        /* The first page decides about the revision of all others, so that together they show the
         * keys at one moment. */
        parts_note_header(parts, page);
        if (pages->request.revision <= 0)
            pages->request.revision = page->header->revision;
    }
    pages->last = !page->more;
    if (status == ST_OK && !pages->last)
        status = advance(pages, page);
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
        /* The values are larger than expected: the same page is requested with fewer keys. */
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
    struct pages_call *pages = CONTAINER_OF(parts, struct pages_call, parts);
    kv_request_copy(&pages->request, sizeof(pages->request), request);
    /* The next page begins behind the last key of the one before, which needs ascending keys. That
     * is etcd's order without sorting, too, and then it reads no more keys than a page has. */
    struct pb_range_request *own = &pages->request;
    if (own->sort_target != VIGIL_SORT_KEY || own->sort_order == VIGIL_SORT_DESCEND)
        parts->call.invalid = "pages need the order of ascending keys";
    own->sort_order = VIGIL_SORT_NONE;
    if (own->limit <= 0)
        own->limit = PAGE_KEYS_DEFAULT;
    parts->fn.range = fn;
    if (set_range(pages) != ST_OK) {
        vigil_call_free(&parts->call);
        return NULL;
    }
    pages->request.key = buf_slice(&pages->key);
    pages->request.range_end = buf_slice(&pages->end);
    return parts_call_with(parts, &pages->request);
}
