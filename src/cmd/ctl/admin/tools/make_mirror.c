/*
 * make-mirror: the keys of one cluster at another one.
 *
 *     copy: pages at one revision ──► follow: a watch from the next revision on ──► …
 *       │                                │
 *       └── --rev: it begins here ───────┘
 *
 * The changes of one revision become one transaction, unless they are more than --max-txn-ops. A
 * watch survives broken connections by itself; when the mirror ends, it says with which --rev it
 * can continue.
 */
#include "base/clock.h"
#include "base/progress.h"
#include "cmd/ctl/admin/tools/make_mirror_dest.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    PAGE_KEYS_FIRST = 100,
    PAGE_KEYS_MAX = 1000, /* as etcdctl */
    PAGE_BYTES = 4 << 20, /* pages are made smaller or larger to have about this size */
    COPY_TXN_BYTES = 512 << 10,
};
#define TELL_EVERY_NS (30 * NS_PER_S)

struct mirror {
    struct ctl *ctl;
    vigil_client *source;
    struct mirror_dest dest;
    int64_t revision; /* everything up to it is at the destination */
    uint64_t all;     /* keys to be copied; 0: unknown */
    struct progress progress;
    int64_t told_ns; /* when the number of changes was last printed */
};

/* On a terminal a line that is drawn again and again; elsewhere a number every 30 s, as etcdctl. */
static void tell(struct mirror *mirror)
{
    progress_show(&mirror->progress, mirror->dest.total, mirror->all);
    int64_t now_ns = clock_mono_ns(clock_system());
    if (now_ns - mirror->told_ns < TELL_EVERY_NS)
        return;
    mirror->told_ns = now_ns;
    if (!mirror->progress.is_terminal)
        fprintf(mirror->ctl->out, "%" PRIu64 "\n", mirror->dest.total);
    fflush(mirror->ctl->out);
}

/* -- Copying -- */

struct page {
    vigil_range_request request;
    char *next; /* the key of the request, owned */
};

static size_t bytes_of(const vigil_range_response *range)
{
    size_t bytes = 1;
    for (size_t i = 0; i < range->kv_count; i++)
        bytes += range->kvs[i].key.size + range->kvs[i].value.size;
    return bytes;
}

/* The request for what follows. */
static int turn_page(struct mirror *mirror, struct page *page, const vigil_range_response *range)
{
    vigil_bytes last = range->kvs[range->kv_count - 1].key;
    char *next = malloc(last.size + 1);
    if (!next)
        return ctl_fail(mirror->ctl, CTL_ERROR, "out of memory");
    memcpy(next, last.data, last.size);
    next[last.size] = '\0';
    free(page->next);
    page->next = next;
    page->request.key = vigil_bytes_of(next, last.size + 1);
    page->request.revision = mirror->revision;
    double keys = (double)PAGE_BYTES / (double)bytes_of(range) * (double)range->kv_count;
    page->request.limit = keys < 1 ? 1 : keys > PAGE_KEYS_MAX ? PAGE_KEYS_MAX : (int64_t)keys;
    return CTL_OK;
}

static int put_page(struct mirror *mirror, const vigil_range_response *range)
{
    int code = CTL_OK;
    for (size_t i = 0; i < range->kv_count && code == CTL_OK; i++) {
        code = mirror_dest_put(&mirror->dest, range->kvs[i].key, range->kvs[i].value);
        tell(mirror);
    }
    return code == CTL_OK ? mirror_dest_flush(&mirror->dest) : code;
}

/* One page. The first one decides the revision of all. */
static int copy_page(struct mirror *mirror, struct page *page, bool *ret_more)
{
    vigil_call *call = vigil_range(mirror->source, &page->request);
    int code = CTL_OK;
    if (vigil_call_run(call) != VIGIL_OK)
        code = ctl_fail_with(mirror->ctl, vigil_call_error(call));
    const vigil_range_response *range = code == CTL_OK ? vigil_range_result(call) : NULL;
    if (range && !page->request.revision) {
        mirror->revision = range->header ? range->header->revision : 0;
        mirror->all = (uint64_t)range->count;
    }
    if (range)
        code = put_page(mirror, range);
    *ret_more = range && range->more && range->kv_count;
    if (code == CTL_OK && *ret_more)
        code = turn_page(mirror, page, range);
    vigil_call_free(call);
    if (code == CTL_OK && !ctl_wait(mirror->source, 0))
        code = CTL_INTERRUPTED;
    return code;
}

static int copy(struct mirror *mirror)
{
    const struct mirror_flags *flags = mirror->ctl->flags;
    vigil_bytes prefix = vigil_text(flags->prefix);
    void *end = arena_alloc(mirror->ctl->arena, prefix.size + 1);
    if (!end)
        return ctl_fail(mirror->ctl, CTL_ERROR, "out of memory");
    struct page page = {.next = NULL};
    vigil_range_request_init(&page.request);
    page.request.key = prefix.size ? prefix : vigil_bytes_of("", 1);
    page.request.range_end = vigil_prefix_end(prefix, end);
    page.request.limit = PAGE_KEYS_FIRST;
    mirror->dest.bytes_max = COPY_TXN_BYTES;
    bool more = true;
    int code = CTL_OK;
    while (code == CTL_OK && more)
        code = copy_page(mirror, &page, &more);
    free(page.next);
    mirror->dest.bytes_max = SIZE_MAX;
    mirror->all = 0;
    progress_next(&mirror->progress, "mirror");
    return code;
}

/* -- Following -- */

static int apply_events(struct mirror *mirror, const vigil_watch_batch *batch)
{
    int64_t last = 0;
    int code = CTL_OK;
    for (size_t i = 0; i < batch->event_count && code == CTL_OK; i++) {
        int64_t revision = batch->events[i].kv->mod_revision;
        if (last && revision > last) {
            code = mirror_dest_flush(&mirror->dest);
            mirror->revision = code == CTL_OK ? last : mirror->revision;
        }
        last = revision;
        if (code == CTL_OK)
            code = batch->events[i].type == VIGIL_DELETE
                       ? mirror_dest_delete(&mirror->dest, batch->events[i].kv->key)
                       : mirror_dest_put(&mirror->dest, batch->events[i].kv->key,
                                         batch->events[i].kv->value);
        tell(mirror);
    }
    if (code == CTL_OK)
        code = mirror_dest_flush(&mirror->dest);
    if (code == CTL_OK && batch->revision > mirror->revision)
        mirror->revision = batch->revision;
    return code;
}

static int apply_batch(struct mirror *mirror, const vigil_watch_batch *batch)
{
    if (batch->what == VIGIL_WATCH_EVENTS)
        return apply_events(mirror, batch);
    if (batch->what != VIGIL_WATCH_ENDED)
        return CTL_OK;
    if (batch->error->code == VIGIL_ERROR_COMPACTED && ctl_is_etcdctl(mirror->ctl))
        return ctl_fail(mirror->ctl, CTL_ERROR,
                        "etcdserver: mvcc: required revision has been compacted");
    return ctl_fail_with(mirror->ctl, batch->error);
}

static int take_batches(struct mirror *mirror, vigil_queue *queue)
{
    const vigil_item *item;
    int code = CTL_OK;
    while (code == CTL_OK && vigil_queue_take(queue, 0, &item) == VIGIL_OK) {
        code = apply_batch(mirror, item->batch);
        vigil_item_release(item);
        if (code == CTL_OK && !ctl_wait(mirror->source, 0))
            code = CTL_INTERRUPTED;
    }
    return code;
}

static int follow(struct mirror *mirror)
{
    const struct mirror_flags *flags = mirror->ctl->flags;
    vigil_watch_options options;
    vigil_watch_options_init(&options);
    options.key = vigil_text(flags->prefix);
    options.prefix = 1;
    options.revision = mirror->revision + 1;
    vigil_queue *queue = NULL;
    vigil_watch *watch = NULL;
    int code = CTL_OK;
    if (vigil_queue_new(mirror->source, &queue) != VIGIL_OK ||
        vigil_queue_watch(queue, &options, NULL, &watch) != VIGIL_OK)
        code = ctl_fail(mirror->ctl, CTL_ERROR, "out of memory");
    while (code == CTL_OK) {
        code = ctl_wait(mirror->source, 1000) ? take_batches(mirror, queue) : CTL_INTERRUPTED;
        tell(mirror);
    }
    vigil_watch_free(watch);
    vigil_queue_free(queue);
    return code;
}

/* -- The command -- */

static int run(struct mirror *mirror)
{
    const struct mirror_flags *flags = mirror->ctl->flags;
    mirror->told_ns = clock_mono_ns(clock_system());
    mirror->revision = flags->revision > 1 ? flags->revision - 1 : 0;
    int code = mirror->revision ? CTL_OK : copy(mirror);
    bool is_copied = code == CTL_OK;
    if (is_copied)
        code = follow(mirror);
    progress_end(&mirror->progress);
    if (!ctl_is_etcdctl(mirror->ctl) && is_copied)
        fprintf(stderr,
                "Mirrored up to revision %" PRId64 "; --rev %" PRId64 " continues from there.\n",
                mirror->revision, mirror->revision + 1);
    return code;
}

int admin_make_mirror(struct ctl *ctl)
{
    struct mirror mirror = {.ctl = ctl};
    int code = mirror_dest_open(&mirror.dest, ctl);
    if (code == CTL_OK)
        mirror.source = ctl_client(ctl, &code);
    if (mirror.source) {
        progress_init(&mirror.progress, stderr, "copy", "keys");
        mirror.progress.is_terminal = mirror.progress.is_terminal && !ctl_is_etcdctl(ctl);
        if (!ctl_is_etcdctl(ctl))
            ctl_catch_signals();
        code = run(&mirror);
    }
    mirror_dest_close(&mirror.dest);
    return code;
}
