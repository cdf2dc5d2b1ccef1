#include "mirror/load/loader.h"

#include "base/buf.h"
#include "base/xalloc.h"
#include "client/call/client.h"
#include "mirror/answer/possible.h"

#include <vigil/kv.h>

enum { PAGE_TIMEOUT_MS = 30 * 1000 };
#define RETRY_NS (500 * NS_PER_MS)
/* The next request must be on its way before a page is compared. */
#define COMPARE_AFTER_NS (200 * NS_PER_US)

struct loader {
    struct loader_options options;
    size_t range;     /* range of the next page */
    struct buf key;   /* key of the next page */
    int64_t limit;    /* keys of the next page */
    int64_t revision; /* 0 before the first page, unless one is wanted */
    bool streams;     /* the server may have RangeStream */
    bool all_requested;
    vigil_call *call; /* the page that was requested; owned; NULL: none */
    vigil_call *page; /* the page to be compared; owned; NULL: none */
    bool arrived;     /* the call has completed while there is a page */
    struct timer compare, retry;
};

static void request_page(struct loader *loader);
static void request_next(struct loader *loader);
static void on_compare(struct timer *timer);
static void on_retry(struct timer *timer);

static struct loop *loop_of(const struct loader *loader)
{
    return loader->options.client->driver.loop;
}

static void set_key(struct loader *loader, struct slice key, bool after)
{
    enum status status = ST_OK;
    loader->key.len = 0;
    if (buf_append(&loader->key, key) != ST_OK ||
        (after && buf_append(&loader->key, slice_of("", 1)) != ST_OK))
        status = ST_NOMEM;
    xalloc_check(status == ST_OK ? loader : NULL, key.len + 1);
}

static const struct range *range_of(const struct loader *loader)
{
    return &loader->options.ranges->items[loader->range];
}

struct loader *loader_new(const struct loader_options *options)
{
    struct loader *loader = xcalloc(1, sizeof(*loader));
    loader->options = *options;
    loader->limit = LOADER_PAGE_KEYS_FIRST;
    loader->revision = options->revision;
    loader->streams = true;
    loader->compare.fn = on_compare;
    loader->retry.fn = on_retry;
    set_key(loader, range_of(loader)->key, false);
    request_page(loader);
    return loader;
}

static void stop(struct loader *loader)
{
    loop_timer_cancel(loop_of(loader), &loader->compare);
    loop_timer_cancel(loop_of(loader), &loader->retry);
    vigil_call_free(TAKE(loader->call));
    vigil_call_free(TAKE(loader->page));
}

void loader_free(struct loader *loader)
{
    if (!loader)
        return;
    stop(loader);
    buf_fini(&loader->key);
    free(loader);
}

static void finish(struct loader *loader, enum loader_outcome outcome, const char *reason)
{
    struct loader_result result = {.outcome = outcome, .revision = loader->revision};
    snprintf(result.reason, sizeof(result.reason), "%s", reason);
    stop(loader);
    loader->options.hooks->done(loader->options.ctx, &result);
}

/* -- Requests -- */

static size_t page_bytes(const vigil_range_response *page)
{
    size_t bytes = 0;
    for (size_t i = 0; i < page->kv_count; i++)
        bytes += page->kvs[i].key.size + page->kvs[i].value.size + 16;
    return bytes;
}

/* The next page is to have about LOADER_PAGE_BYTES, but at most ten times as many keys. */
static void adapt_limit(struct loader *loader, const vigil_range_response *page)
{
    size_t bytes = page_bytes(page);
    if (page->kv_count == 0)
        return;
    int64_t fitting = (int64_t)((uint64_t)LOADER_PAGE_BYTES * page->kv_count / size_max(bytes, 1));
    int64_t most = loader->limit * 10;
    loader->limit = fitting < most ? fitting : most;
    if (loader->limit > LOADER_PAGE_KEYS_MAX)
        loader->limit = LOADER_PAGE_KEYS_MAX;
    if (loader->limit < 1)
        loader->limit = 1;
}

static void advance_range(struct loader *loader)
{
    if (++loader->range < loader->options.ranges->count)
        set_key(loader, range_of(loader)->key, false);
    else
        loader->all_requested = true;
}

static void advance_to(struct loader *loader, const vigil_kv *last)
{
    set_key(loader, slice_of(last->key.data, last->key.size), true);
}

/* The page becomes the one to be compared, and the next one is requested. */
static void take_page(struct loader *loader)
{
    const vigil_range_response *page = vigil_range_result(loader->call);
    loader->arrived = false;
    loader->page = TAKE(loader->call);
    loader->revision = loader->revision ? loader->revision : page->header->revision;
    adapt_limit(loader, page);
    /* The next page continues after the last key of this one, or begins the next range. */
    if (page->more && page->kv_count)
        advance_to(loader, &page->kvs[page->kv_count - 1]);
    else
        advance_range(loader);
    if (!loader->all_requested && !loader->streams)
        request_page(loader);
    loop_timer_set(loop_of(loader), &loader->compare,
                   loop_now_ns(loop_of(loader)) + COMPARE_AFTER_NS);
}

static void on_failed(struct loader *loader, const vigil_error *error)
{
    char text[VIGIL_ERROR_TEXT_BYTES];
    memcpy(text, error->text, sizeof(text));
    vigil_call_free(TAKE(loader->call));
    if (error->code == VIGIL_ERROR_COMPACTED) {
        /* Loading has taken so long that its revision was compacted meanwhile. */
        finish(loader, LOADER_COMPACTED, text);
        return;
    }
    if (error->code == VIGIL_ERROR_FUTURE_REVISION) {
        finish(loader, LOADER_OTHER, "the cluster's revision has gone back");
        return;
    }
    if (error->code == VIGIL_ERROR_TOO_LARGE && loader->limit > 1) {
        loader->limit /= 2;
        request_page(loader);
        return;
    }
    if (error->code == VIGIL_ERROR_UNIMPLEMENTED && loader->streams) {
        /* The server is older than the streams of ranges, and sends pages instead. */
        loader->streams = false;
        request_page(loader);
        return;
    }
    loader->options.hooks->progress(loader->options.ctx, text);
    loop_timer_set(loop_of(loader), &loader->retry, loop_now_ns(loop_of(loader)) + RETRY_NS);
}

/* Their order is checked by the load. */
static bool is_possible(const struct loader *loader, const vigil_range_response *page)
{
    return possible_kvs((const struct pb_key_value *)page->kvs, page->kv_count,
                        buf_slice(&loader->key), range_of(loader)->range_end);
}

static void on_page(vigil_call *call, void *user)
{
    struct loader *loader = user;
    vigil_error error = *vigil_call_error(call);
    const vigil_range_response *page = vigil_range_result(call);
    if (page && (!page->header || !possible_revision(page->header->revision) ||
                 (page->more && !page->kv_count) || !is_possible(loader, page)))
        snprintf(error.text, sizeof(error.text),
                 "a page has no header, no keys before others, or keys that were not requested");
    if (error.text[0])
        on_failed(loader, &error);
    else if (loader->page)
        loader->arrived = true;
    else
        take_page(loader);
}

static vigil_range_request request_of(const struct loader *loader)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    struct slice end = range_of(loader)->range_end;
    request.key = vigil_bytes_of(loader->key.ptr, loader->key.len);
    request.range_end = vigil_bytes_of(end.ptr, end.len);
    request.revision = loader->revision;
    return request;
}

static void start(struct loader *loader, vigil_call *call, vigil_done done)
{
    loader->call = xalloc_check(call, 1);
    vigil_call_set_timeout(call, PAGE_TIMEOUT_MS);
    int code = vigil_call_start(call, done, loader);
    assert(code == VIGIL_OK);
    (void)code;
}

static void request_page(struct loader *loader)
{
    vigil_range_request request = request_of(loader);
    request.limit = loader->limit;
    start(loader, vigil_range(loader->options.client, &request), on_page);
}

static void on_retry(struct timer *timer)
{
    request_next(CONTAINER_OF(timer, struct loader, retry));
}

/* -- Comparing -- */

static void fail(struct loader *loader, enum status status)
{
    if (status == ST_INVALID)
        finish(loader, LOADER_OTHER,
               "a key that is not newer than the mirror differs from the mirror's");
    else
        finish(loader, LOADER_FAILED, status_text(status));
}

static void complete(struct loader *loader)
{
    enum status status = load_finish(loader->options.load, loader->revision);
    if (status == ST_OK)
        finish(loader, LOADER_COMPLETE, "");
    else
        fail(loader, status);
}

static void on_compare(struct timer *timer)
{
    struct loader *loader = CONTAINER_OF(timer, struct loader, compare);
    const vigil_range_response *page = vigil_range_result(loader->page);
    enum status status =
        load_add(loader->options.load, loader->revision, page->kvs, page->kv_count);
    vigil_call_free(TAKE(loader->page));
    if (status != ST_OK) {
        fail(loader, status);
        return;
    }
    loader->options.hooks->progress(loader->options.ctx, NULL);
    if (loader->all_requested)
        complete(loader);
    else if (loader->arrived)
        take_page(loader);
    else if (loader->streams)
        request_next(loader);
}

/* -- A stream -- */

static int on_part(vigil_call *call, const vigil_range_response *part, void *user)
{
    struct loader *loader = user;
    (void)call;
    enum status status = ST_MALFORMED;
    if (is_possible(loader, part))
        status = load_add(loader->options.load, loader->revision, part->kvs, part->kv_count);
    if (status != ST_OK) {
        fail(loader, status);
        return VIGIL_PART_CONTINUE;
    }
    if (part->kv_count)
        advance_to(loader, &part->kvs[part->kv_count - 1]);
    loader->options.hooks->progress(loader->options.ctx, NULL);
    return VIGIL_PART_CONTINUE;
}

static void on_stream_end(vigil_call *call, void *user)
{
    struct loader *loader = user;
    vigil_error error = *vigil_call_error(call);
    if (error.code != VIGIL_OK) {
        on_failed(loader, &error);
        return;
    }
    vigil_call_free(TAKE(loader->call));
    advance_range(loader);
    if (loader->all_requested)
        complete(loader);
    else
        request_next(loader);
}

/* After the first page, which has the revision. */
static void request_next(struct loader *loader)
{
    if (!loader->streams || !loader->revision) {
        request_page(loader);
        return;
    }
    vigil_range_request request = request_of(loader);
    start(loader, vigil_range_stream(loader->options.client, &request, on_part, loader),
          on_stream_end);
}
