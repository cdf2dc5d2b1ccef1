#include "watchers.h"

#include "actors.h"
#include "base/xalloc.h"
#include "checks.h"
#include "coverage.h"
#include "faults.h"
#include "front.h"
#include "operations.h"
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WATCHERS_MAX = 512, PAUSE_ONE_IN = 8 };

struct seen {
    struct version version;
    struct version previous; /* number 0: none was delivered */
};

struct watcher {
    unsigned number;
    struct watcher_options options;
    char key[KEY_BYTES], end[KEY_BYTES];
    bool audits, ended, paused;
    int end_code;
    int64_t first;   /* revisions from here on are delivered; 0: unknown yet */
    int64_t reached; /* everything up to here was delivered */
    int64_t end_compacted;
    int64_t end_delivered; /* where it would have resumed */
    vigil_watch *watch;    /* owned */
    struct seen *events;   /* owned */
    size_t count, room;
    size_t checked;    /* how many of the events, … */
    size_t history_at; /* … and up to here in the history */
};

static struct {
    struct watcher *all[WATCHERS_MAX]; /* owned */
    unsigned count;
} watchers;

void watchers_begin(void)
{
    watchers.count = 0;
}

void watchers_end(void)
{
    for (unsigned i = 0; i < watchers.count; i++) {
        vigil_watch_free(watchers.all[i]->watch);
        free(watchers.all[i]->events);
        free(watchers.all[i]);
    }
    watchers.count = 0;
}

struct version version_of(const vigil_kv *kv)
{
    struct version version = {
        .revision = kv->mod_revision,
        .created = kv->create_revision,
        .number = kv->version,
        .lease = kv->lease,
        .seen_ns = actors_now(),
    };
    version_set_key(&version, kv->key.data, kv->key.size);
    version_set_value(&version, kv->value.data, kv->value.size);
    return version;
}

/* -- Checks -- */

static void check_event(const struct watcher *watcher, const struct seen *seen,
                        const struct version *expected)
{
    const struct version *got = &seen->version;
    if (strcmp(got->key, expected->key) != 0 || got->revision != expected->revision ||
        !got->number != !expected->number || strcmp(got->value, expected->value) != 0 ||
        (got->number && (got->number != expected->number || got->created != expected->created ||
                         got->lease != expected->lease)))
        violation("watch %u of %s..%s from %lld has %s @%lld version %lld, expected %s @%lld "
                  "version %lld",
                  watcher->number, watcher->key, watcher->end, (long long)watcher->first, got->key,
                  (long long)got->revision, (long long)got->number, expected->key,
                  (long long)expected->revision, (long long)expected->number);
    if (!watcher->options.previous)
        return;
    const struct version *before = history_get(got->key, got->revision - 1);
    const struct version *previous = &seen->previous;
    bool may_be_lost = got->revision - 1 < operations_compacted_ceiling() || faults_have_rotted();
    if (!before != !previous->number && !(before && may_be_lost))
        violation("watch %u: the event of %s @%lld has %s previous value", watcher->number,
                  got->key, (long long)got->revision, before ? "no" : "a");
    if (before && previous->number &&
        (previous->revision != before->revision || strcmp(previous->value, before->value) != 0))
        violation("watch %u: the event of %s @%lld has a wrong previous value @%lld",
                  watcher->number, got->key, (long long)got->revision,
                  (long long)previous->revision);
}

static void check_end(const struct watcher *watcher)
{
    int64_t delivered = watcher->end_delivered;
    int64_t next = delivered >= watcher->first ? delivered + 1 : watcher->first;
    bool compacted = watcher->end_code == VIGIL_ERROR_COMPACTED;
    bool denied = watcher->end_code == VIGIL_ERROR_PERMISSION_DENIED;
    bool is_void = watcher->options.asks_front && front_has_void_mirror(0);
    if (compacted && (next >= watcher->end_compacted ||
                      (!is_void && watcher->end_compacted > operations_compacted_ceiling())))
        violation("watch %u ends as compacted at %lld, but needs only %lld and later",
                  watcher->number, (long long)watcher->end_compacted, (long long)next);
    if (!compacted && !faults_have_rotted() && !(denied && watcher->options.may_be_denied))
        violation("watch %u ends with code %d", watcher->number, watcher->end_code);
}

/* Compares its events with those of the history, as far as both are known. */
static void advance(struct watcher *watcher)
{
    while (watcher->first && watcher->history_at < history_count()) {
        const struct version *change = history_at(watcher->history_at);
        bool matches = range_has(watcher->key, watcher->end, change->key) &&
                       change->revision >= watcher->first;
        if (matches && watcher->checked == watcher->count) {
            if (change->revision <= watcher->reached)
                violation("watch %u of %s..%s from %lld has missed %s @%lld", watcher->number,
                          watcher->key, watcher->end, (long long)watcher->first, change->key,
                          (long long)change->revision);
            return;
        }
        if (matches)
            check_event(watcher, &watcher->events[watcher->checked++], change);
        watcher->history_at++;
    }
    if (watcher->checked == watcher->count)
        return;
    const struct version *extra = &watcher->events[watcher->checked].version;
    if (extra->revision <= history_revision())
        violation("watch %u has an event too many: %s @%lld", watcher->number, extra->key,
                  (long long)extra->revision);
}

/* -- Delivery -- */

static void take_event(struct watcher *watcher, const vigil_event *event)
{
    struct seen seen = {.version = version_of(event->kv)};
    if (event->type == VIGIL_DELETE)
        seen.version.number = 0;
    if (event->prev_kv)
        seen.previous = version_of(event->prev_kv);
    trace_line("watch %u: %s %s = %s @%lld", watcher->number,
               event->type == VIGIL_DELETE ? "delete" : "put", seen.version.key, seen.version.value,
               (long long)seen.version.revision);
    if (watcher->audits) {
        history_add(&seen.version);
        operations_saw(&seen.version);
    }
    operations_see(seen.version.revision);
    if (watcher->count == watcher->room) {
        watcher->room = watcher->room ? 2 * watcher->room : 64;
        watcher->events = xrealloc(watcher->events, watcher->room * sizeof(*watcher->events));
    }
    watcher->events[watcher->count++] = seen;
}

static void take_end(struct watcher *watcher, const vigil_watch_batch *batch)
{
    watcher->ended = true;
    watcher->end_code = batch->error->code;
    watcher->end_compacted = batch->compact_revision;
    watcher->end_delivered = batch->revision;
    trace_line("watch %u ends: %s", watcher->number, batch->error->text);
    if (watcher->audits && !faults_have_rotted())
        violation("the watch of all keys ends at revision %lld: %s", (long long)watcher->reached,
                  batch->error->text);
    check_end(watcher);
}

static int on_batch(vigil_watch *watch, const vigil_watch_batch *batch, void *user)
{
    struct watcher *watcher = user;
    (void)watch;
    if (watcher->ended)
        violation("watch %u delivers something after its end", watcher->number);
    if (batch->what == VIGIL_WATCH_ENDED) {
        take_end(watcher, batch);
        return VIGIL_WATCH_CONTINUE;
    }
    if (batch->what == VIGIL_WATCH_CREATED) {
        if (!watcher->first)
            watcher->first = batch->revision + 1;
        return VIGIL_WATCH_CONTINUE;
    }
    for (size_t i = 0; i < batch->event_count; i++)
        take_event(watcher, &batch->events[i]);
    if (batch->revision < watcher->reached)
        violation("watch %u goes back from revision %lld to %lld", watcher->number,
                  (long long)watcher->reached, (long long)batch->revision);
    watcher->reached = batch->revision;
    if (watcher->audits)
        checks_run();
    else
        advance(watcher);
    watcher->paused = watcher->options.pauses && random_below(actors_random(), PAUSE_ONE_IN) == 0;
    return watcher->paused ? VIGIL_WATCH_PAUSE : VIGIL_WATCH_CONTINUE;
}

static struct watcher *add(vigil_client *client, const struct watcher_options *options)
{
    assert(watchers.count < WATCHERS_MAX);
    struct watcher *watcher = xcalloc(1, sizeof(*watcher));
    watcher->number = watchers.count;
    watcher->options = *options;
    watcher->first = options->revision;
    watcher->audits = watchers.count == 0;
    snprintf(watcher->key, KEY_BYTES, "%s", options->key);
    snprintf(watcher->end, KEY_BYTES, "%s", options->end);
    watchers.all[watchers.count++] = watcher;

    vigil_watch_options wanted;
    vigil_watch_options_init(&wanted);
    wanted.key = vigil_text(options->key);
    wanted.range_end = vigil_text(options->end);
    wanted.revision = options->revision;
    wanted.prev_kv = options->previous;
    wanted.created_notify = 1;
    wanted.progress_notify = 1;
    wanted.buffer_bytes = options->pauses ? 256 : 1 << 20;
    int code = vigil_watch_new(client, &wanted, on_batch, watcher, &watcher->watch);
    assert(code == VIGIL_OK);
    trace_line("watch %u of %s..%s from %lld", watcher->number, options->key, options->end,
               (long long)options->revision);
    return watcher;
}

void watchers_audit(vigil_client *client, bool asks_front)
{
    (void)add(
        client,
        &(struct watcher_options){
            .key = " ", .end = "~", .revision = 1, .previous = true, .asks_front = asks_front});
}

void watcher_new(vigil_client *client, const struct watcher_options *options)
{
    coverage_add(COVERAGE_WATCH);
    (void)add(client, options);
}

void watchers_resume(void)
{
    for (unsigned i = 0; i < watchers.count; i++) {
        struct watcher *watcher = watchers.all[i];
        if (watcher->paused)
            vigil_watch_resume(watcher->watch);
        watcher->paused = false;
    }
}

/* The revision of its last event counts, too: with it everything before was delivered. */
static bool has_reached(const struct watcher *watcher, int64_t revision)
{
    if (watcher->ended || watcher->reached >= revision)
        return true;
    for (size_t i = history_count(); i-- > 0;) {
        const struct version *change = history_at(i);
        if (change->revision <= watcher->reached)
            return true;
        if (change->revision >= watcher->first &&
            range_has(watcher->key, watcher->end, change->key))
            return false;
    }
    return true;
}

bool watchers_have_reached(int64_t revision)
{
    if (history_revision() < revision)
        return false;
    for (unsigned i = 0; i < watchers.count; i++)
        if (!has_reached(watchers.all[i], revision) || watchers.all[i]->paused)
            return false;
    return true;
}

bool watchers_audit_has_ended(void)
{
    return watchers.all[0]->ended;
}

void watchers_ask(void)
{
    for (unsigned i = 0; i < watchers.count; i++)
        if (!watchers.all[i]->ended)
            vigil_watch_request_progress(watchers.all[i]->watch);
}

/* -- In the end -- */

void watchers_check_known(void)
{
    for (unsigned i = 0; i < watchers.count; i++)
        advance(watchers.all[i]);
}

void watchers_check(bool partial)
{
    watchers_check_known();
    for (unsigned i = 0; i < watchers.count && !partial; i++)
        if (!watchers.all[i]->ended && !has_reached(watchers.all[i], history_revision()))
            violation("watch %u has delivered only revision %lld", watchers.all[i]->number,
                      (long long)watchers.all[i]->reached);
}
