/* vigil history: all versions of a key that are not compacted. */
#include "base/clock.h"
#include "base/xalloc.h"
#include "cmd/ctl/explore/change_view.h"
#include "cmd/ctl/explore/explore.h"
#include "cmd/ctl/explore/pager.h"

#include <inttypes.h>

enum { WAIT_MS = 50, PROGRESS_ANSWERS = 2 };
#define PROGRESS_NS (300 * NS_PER_MS)

/*
 *     reading ──► watching ──► complete
 *        │           │  ▲
 *        │           ▼  │ (from the oldest revision that is left)
 *        │        compacted ──► complete
 *        └──► failed ◄──┘
 *
 * The newest version is read first, so that the end is known: its revision. If the key does not
 * exist now, the end is where the server says that everything has been delivered. Servers before
 * etcd 3.4.31 and 3.5.13 say so too early, and deliver the past every 100 ms. So the revision of
 * the response counts, and two answers are needed with PROGRESS_NS and no event between them.
 */
enum history_state {
    HISTORY_READING,
    HISTORY_WATCHING,
    HISTORY_COMPACTED,
    HISTORY_COMPLETE,
    HISTORY_FAILED,
};

#define TO(state) (1u << HISTORY_##state)
static const unsigned history_moves[] = {
    [HISTORY_READING] = TO(WATCHING) | TO(FAILED),
    [HISTORY_WATCHING] = TO(COMPACTED) | TO(COMPLETE) | TO(FAILED),
    [HISTORY_COMPACTED] = TO(WATCHING) | TO(COMPLETE) | TO(FAILED),
    [HISTORY_COMPLETE] = 0,
    [HISTORY_FAILED] = 0,
};

struct history {
    enum history_state state;
    struct ctl *ctl;
    vigil_client *client;
    struct change_view view;
    vigil_bytes key;
    int64_t newest;      /* newest revision of the store when the command began */
    int64_t last;        /* revision of the newest version; 0: the key does not exist */
    int64_t compacted;   /* the oldest revision that can be read; valid if it is compacted */
    unsigned answers;    /* progress answers since the last event */
    bool requested;      /* progress, and it was not answered yet */
    int64_t request_ns;  /* when it is requested next */
    bool has_previous;   /* the value of the version before, for the difference */
    struct buf previous; /* … */
    uint64_t shown;
    vigil_error error;
    int exit;
};

static void history_move(struct history *h, enum history_state next)
{
    assert(history_moves[h->state] & (1u << next));
    h->state = next;
}

/* -- Versions -- */

static void show(struct history *h, const vigil_event *event)
{
    vigil_kv before = {.key = h->key, .value = vigil_bytes_of(h->previous.ptr, h->previous.len)};
    vigil_event shown = *event;
    shown.prev_kv = h->has_previous && event->type == VIGIL_PUT ? &before : NULL;
    change_view_show(&h->view, &shown, 0);
    h->shown++;
    h->previous.len = 0;
    h->has_previous = event->type == VIGIL_PUT;
    if (h->has_previous) {
        struct slice value = slice_of(event->kv->value.data, event->kv->value.size);
        xalloc_check(buf_append(&h->previous, value) == ST_OK ? h : NULL, value.len);
    }
}

/* Versions that were written after the command began are not shown. */
static void receive(struct history *h, const vigil_watch_batch *batch)
{
    for (size_t i = 0; i < batch->event_count && h->state == HISTORY_WATCHING; i++) {
        int64_t revision = batch->events[i].kv->mod_revision;
        if (revision <= h->newest)
            show(h, &batch->events[i]);
        if (revision >= (h->last ? h->last : h->newest))
            history_move(h, HISTORY_COMPLETE);
    }
    h->answers = 0;
}

static void on_progress(struct history *h, int64_t revision)
{
    if (!h->requested || revision < h->newest)
        return;
    h->requested = false;
    if (++h->answers == PROGRESS_ANSWERS)
        history_move(h, HISTORY_COMPLETE);
}

static int on_batch(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    struct history *h = user;
    (void)watch;
    if (h->state != HISTORY_WATCHING)
        return VIGIL_WATCH_PAUSE;
    if (batch->what == VIGIL_WATCH_EVENTS) {
        receive(h, batch);
    } else if (batch->what == VIGIL_WATCH_PROGRESS) {
        on_progress(h, batch->header ? batch->header->revision : 0);
    } else if (batch->what == VIGIL_WATCH_ENDED) {
        h->error = *batch->error;
        h->compacted = batch->compact_revision;
        bool is_compacted = batch->error->code == VIGIL_ERROR_COMPACTED && h->compacted > 0;
        history_move(h, is_compacted ? HISTORY_COMPACTED : HISTORY_FAILED);
    }
    return h->state == HISTORY_WATCHING ? VIGIL_WATCH_CONTINUE : VIGIL_WATCH_PAUSE;
}

/* -- Reading -- */

static vigil_call *read_at(struct history *h, int64_t revision)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = h->key;
    request.revision = revision;
    vigil_call *call = vigil_range(h->client, &request);
    if (vigil_call_run(call) == VIGIL_OK)
        return call;
    history_move(h, HISTORY_FAILED);
    h->exit = ctl_fail_with(h->ctl, vigil_call_error(call));
    vigil_call_free(call);
    return NULL;
}

static void find_end(struct history *h)
{
    vigil_call *call = read_at(h, 0);
    if (!call)
        return;
    const vigil_range_response *range = vigil_range_result(call);
    h->newest = range->header->revision;
    h->last = range->kv_count > 0 ? range->kvs[0].mod_revision : 0;
    vigil_call_free(call);
}

static void request_progress(struct history *h, vigil_watch *watch)
{
    int64_t now_ns = clock_mono_ns(clock_system());
    if (h->last || now_ns < h->request_ns)
        return;
    vigil_watch_request_progress(watch);
    h->requested = true;
    h->request_ns = now_ns + PROGRESS_NS;
}

static void watch_from(struct history *h, int64_t revision)
{
    vigil_watch_options options;
    vigil_watch *watch;
    vigil_watch_options_init(&options);
    options.key = h->key;
    options.revision = revision;
    int code = vigil_watch_new(h->client, &options, on_batch, h, &watch);
    if (code != VIGIL_OK) {
        h->exit = ctl_fail(h->ctl, CTL_ERROR, "%s", vigil_code_name(code));
        history_move(h, HISTORY_FAILED);
        return;
    }
    history_move(h, HISTORY_WATCHING);
    h->request_ns = clock_mono_ns(clock_system()) + PROGRESS_NS;
    while (h->state == HISTORY_WATCHING && ctl_wait(h->client, WAIT_MS))
        request_progress(h, watch);
    vigil_watch_free(watch);
}

/* The version of the compacted revision is still there, but the watch does not deliver it. */
static void show_oldest(struct history *h)
{
    vigil_call *call = read_at(h, h->compacted);
    if (!call)
        return;
    const vigil_range_response *range = vigil_range_result(call);
    if (!h->view.json)
        fprintf(h->ctl->out, "(versions before revision %" PRId64 " are compacted)\n",
                h->compacted);
    if (range->kv_count > 0) {
        vigil_event event = {.type = VIGIL_PUT, .kv = &range->kvs[0]};
        show(h, &event);
    }
    bool is_newest = range->kv_count > 0 && range->kvs[0].mod_revision == h->last;
    if (is_newest || h->compacted >= h->newest)
        history_move(h, HISTORY_COMPLETE);
    vigil_call_free(call);
}

/* -- The command -- */

static int finish(struct history *h)
{
    if (h->state == HISTORY_FAILED)
        return h->exit != CTL_OK ? h->exit : ctl_fail_with(h->ctl, &h->error);
    if (h->state != HISTORY_COMPLETE)
        return CTL_INTERRUPTED;
    if (h->shown == 0)
        return ctl_fail(h->ctl, CTL_ERROR,
                        "there is no version of this key since revision %" PRId64, h->compacted);
    return CTL_OK;
}

int explore_history(struct ctl *ctl)
{
    const struct history_flags *flags = ctl->flags;
    struct history h = {.ctl = ctl, .key = vigil_text(ctl->words[0])};
    change_view_init(&h.view, ctl);
    h.view.old_times = true;
    h.view.differences = !flags->no_values;
    h.view.values.lines_max = (uint64_t)flags->lines;
    h.client = explore_client(ctl, &h.exit);
    if (!h.client)
        return h.exit;
    h.exit = CTL_OK;
    find_end(&h);
    if (h.state == HISTORY_READING)
        watch_from(&h, 1);
    if (h.state == HISTORY_COMPACTED)
        show_oldest(&h);
    if (h.state == HISTORY_COMPACTED)
        watch_from(&h, h.compacted + 1);
    buf_fini(&h.previous);
    return finish(&h);
}
