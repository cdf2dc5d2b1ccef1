#include "tier_watches.h"

#include "actors.h"
#include "base/xalloc.h"
#include "coverage.h"
#include "kube_model.h"
#include "operations.h"
#include "tier_states.h"
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WATCHES_MAX = 64, PAUSE_ONE_IN = 10, EXPIRED = 410, REPEATED = 12 };

struct seen {
    int type; /* enum vigil_kube_event_type */
    int64_t revision;
    char key[KEY_BYTES]; /* a bookmark has none: "" */
};

struct watch {
    unsigned number;
    struct tier_judgement judgement;
    struct tier_scope scope;
    bool in_namespace, protobuf;
    bool is_last;  /* it was added when nothing was wrong any more, so that the mirror answers it */
    int timeout_s; /* when the tier ends it */
    /* The request under way. */
    vigil_kube_watch *watch; /* owned; NULL: it is to be begun again, or over */
    bool initial;            /* the state is being received */
    bool lost;               /* it is of a history that the server does not have any more */
    bool ended, paused;
    int code;         /* ended: 0, or the code of a status */
    bool over;        /* its user has lost the right */
    int64_t received; /* resumes after this revision; 0: with the state */
    int64_t at;       /* everything up to here was compared with the history */
    struct tier_state state;
    struct seen *events; /* owned */
    size_t count, room, checked;
};

static struct {
    struct watch *all[WATCHES_MAX]; /* owned */
    unsigned count;
} watches;

/* -- Checks -- */

static void check_event(struct watch *w, const struct seen *seen)
{
    static const char *const types[] = {"added", "modified", "deleted", "bookmark"};
    const struct version *next = tier_states_next(&w->scope, w->at);
    if (seen->type == VIGIL_KUBE_BOOKMARK && seen->revision < w->at)
        violation("tier watch %u has a bookmark @%lld after @%lld", w->number,
                  (long long)seen->revision, (long long)w->at);
    bool is_missing = next && next->revision <= seen->revision &&
                      (seen->type == VIGIL_KUBE_BOOKMARK || next->revision < seen->revision);
    if (is_missing)
        violation("tier watch %u has %s %s @%lld after @%lld, and misses %s @%lld", w->number,
                  types[seen->type], seen->key, (long long)seen->revision, (long long)w->at,
                  next->key, (long long)next->revision);
    w->at = seen->revision > w->at ? seen->revision : w->at;
    if (seen->type == VIGIL_KUBE_BOOKMARK)
        return;
    if (!next || next->revision != seen->revision || strcmp(next->key, seen->key) != 0)
        violation("tier watch %u has %s %s @%lld, which is not the next change", w->number,
                  types[seen->type], seen->key, (long long)seen->revision);
    bool was_there = tier_scope_has(&w->scope, history_get(seen->key, seen->revision - 1));
    bool is_there = tier_scope_has(&w->scope, history_get(seen->key, seen->revision));
    int expected = !is_there   ? VIGIL_KUBE_DELETED
                   : was_there ? VIGIL_KUBE_MODIFIED
                               : VIGIL_KUBE_ADDED;
    if (seen->type != expected)
        violation("tier watch %u has %s @%lld as %s, but it is %s", w->number, seen->key,
                  (long long)seen->revision, types[seen->type], types[expected]);
}

static void check_known(struct watch *w)
{
    while (w->checked < w->count && w->events[w->checked].revision <= history_revision())
        check_event(w, &w->events[w->checked++]);
}

void tier_watches_check_known(void)
{
    for (unsigned i = 0; i < watches.count; i++)
        check_known(watches.all[i]);
}

/* -- What it receives -- */

static void add_event(struct watch *w, const struct seen *seen)
{
    if (w->count == w->room) {
        w->room = w->room ? 2 * w->room : 16;
        w->events = xrealloc(w->events, w->room * sizeof(*w->events));
    }
    w->events[w->count++] = *seen;
    w->received = seen->revision;
    operations_see(seen->revision);
    check_known(w);
}

static void take_initial(struct watch *w, const vigil_kube_event *event)
{
    if (event->type == VIGIL_KUBE_ADDED) {
        tier_state_add_item(&w->state, event->object);
        return;
    }
    if (event->type != VIGIL_KUBE_BOOKMARK || !event->initial_end)
        violation("tier watch %u has an event of type %d before its state is complete", w->number,
                  event->type);
    w->initial = false;
    w->state.revision = w->received = w->at = tier_version_of(event->version);
    tier_states_add(&w->state);
}

static void take(struct watch *w, const vigil_kube_event *event)
{
    struct seen seen = {.type = event->type, .revision = tier_version_of(event->version)};
    if (event->object) {
        tier_key_of(event->object, seen.key);
        coverage_add(COVERAGE_TIER_EVENT);
    }
    if (event->object && event->type != VIGIL_KUBE_DELETED)
        tier_states_show(seen.key, seen.revision, event->object);
    trace_line("tier watch %u: %d %s @%lld", w->number, seen.type, seen.key,
               (long long)seen.revision);
    if (seen.revision <= 0)
        violation("tier watch %u has an event without a version", w->number);
    if (w->judgement.user == TIER_EVE)
        violation("tier watch %u of eve shows something", w->number);
    if (w->lost && (w->initial || event->type != VIGIL_KUBE_BOOKMARK))
        violation("tier watch %u has events of two histories", w->number);
    if (w->lost)
        return;
    if (w->initial)
        take_initial(w, event);
    else
        add_event(w, &seen);
}

static int on_event(vigil_kube_watch *watch, const vigil_kube_event *event, void *user)
{
    struct watch *w = user;
    (void)watch;
    if (event->status && event->status->code)
        w->code = event->status->code;
    if (event->type == VIGIL_KUBE_ENDED) {
        trace_line("tier watch %u ends: %s", w->number, event->reason);
        w->ended = true;
        return VIGIL_KUBE_CONTINUE;
    }
    if (event->type == VIGIL_KUBE_ERROR)
        return VIGIL_KUBE_CONTINUE;
    take(w, event);
    w->paused = random_below(actors_random(), PAUSE_ONE_IN) == 0;
    return w->paused ? VIGIL_KUBE_PAUSE : VIGIL_KUBE_CONTINUE;
}

/* -- Requests -- */

static void start(struct watch *w)
{
    char version[32], selector[KEY_BYTES + 16], label[16];
    vigil_kube_watch_options options;
    vigil_kube_watch_options_init(&options);
    options.target = (vigil_kube_target){.version = "v1",
                                         .resource = "configmaps",
                                         .name_space = w->in_namespace ? "default" : NULL};
    snprintf(version, sizeof(version), "%lld", (long long)w->received);
    snprintf(selector, sizeof(selector), "metadata.name=%s",
             w->scope.only + strlen(KUBE_ROOT) * !!*w->scope.only);
    snprintf(label, sizeof(label), "group=%c", w->scope.group);
    options.version = w->received ? version : NULL;
    options.field_selector = *w->scope.only ? selector : NULL;
    options.label_selector = w->scope.group ? label : NULL;
    options.initial_events = w->initial = !w->received;
    options.protobuf = w->protobuf;
    options.timeout_s = w->timeout_s;
    w->ended = w->paused = false;
    w->code = 0;
    w->judgement = tier_users_look(w->judgement.user);
    w->state = (struct tier_state){
        .what = "the state of a watch", .scope = w->scope, .floor = operations_seen()};
    trace_line("tier watch %u of %s: %s%s%s from %lld", w->number,
               tier_user_name(w->judgement.user), w->scope.only, w->scope.group ? label : "",
               w->protobuf ? " in protobuf" : "", (long long)w->received);
    if (vigil_kube_watch_new(tier_users_kube(w->judgement.user), &options, on_event, w,
                             &w->watch) != VIGIL_OK)
        violation("a watch cannot be created");
}

void tier_watches_add(enum tier_user user, bool with_state, struct random *random)
{
    if (watches.count == WATCHES_MAX)
        return;
    struct watch *w = xcalloc(1, sizeof(*w));
    *w = (struct watch){.number = watches.count, .judgement = {.user = user}};
    int64_t newest = operations_seen(), back = (int64_t)random_below(random, 30);
    if (!with_state && random_below(random, 3) && newest > back)
        w->received = w->at = newest - back;
    if (random_below(random, 4) == 0)
        snprintf(w->scope.only, KEY_BYTES, "%sm%u", KUBE_ROOT, (unsigned)random_below(random, 4));
    else if (random_below(random, 3) == 0)
        w->scope.group = "ab"[random_below(random, 2)];
    w->is_last = with_state;
    w->in_namespace = random_below(random, 2);
    w->timeout_s = random_below(random, 2) ? 20 : 120;
    w->protobuf = random_below(random, 4) == 0 && !with_state;
    watches.all[watches.count++] = w;
    coverage_add(COVERAGE_TIER_WATCH);
    start(w);
}

static void begin_again(struct watch *w)
{
    enum { UNAUTHORIZED = 401, FORBIDDEN = 403 };
    vigil_kube_watch_free(w->watch);
    w->watch = NULL;
    if (w->code == UNAUTHORIZED || w->code == FORBIDDEN) {
        tier_users_judge(&w->judgement, w->code, "watch");
        w->over = true;
        return;
    }
    if (w->code == EXPIRED) {
        coverage_add(COVERAGE_TIER_EXPIRED);
        w->received = 0;
        w->lost = false;
    }
    start(w);
}

void tier_watches_tend(struct random *random)
{
    for (unsigned i = 0; i < watches.count; i++) {
        struct watch *w = watches.all[i];
        if (w->watch && w->ended)
            begin_again(w);
        else if (w->watch && w->paused && random_below(random, 3) == 0) {
            w->paused = false;
            vigil_kube_watch_resume(w->watch);
        }
    }
}

/* -- In the end -- */

bool tier_watches_have_arrived(void)
{
    for (unsigned i = 0; i < watches.count; i++) {
        const struct watch *w = watches.all[i];
        if (!w->over && (w->ended || w->initial || w->lost || w->checked < w->count ||
                         tier_states_next(&w->scope, w->at)))
            return false;
    }
    return true;
}

void tier_watches_lose(void)
{
    for (unsigned i = 0; i < watches.count; i++) {
        struct watch *w = watches.all[i];
        if (w->received <= REPEATED) {
            vigil_kube_watch_free(TAKE(w->watch));
            w->over = true;
        }
        w->lost = true;
        w->count = w->checked = 0;
        w->at = 0;
    }
}

bool tier_watches_run(enum tier_user user)
{
    for (unsigned i = 0; i < watches.count; i++)
        if (watches.all[i]->judgement.user == user && !watches.all[i]->over &&
            watches.all[i]->is_last)
            return true;
    return false;
}

/* -- Life -- */

void tier_watches_begin(void)
{
    watches.count = 0;
}

void tier_watches_end(void)
{
    for (unsigned i = 0; i < watches.count; i++) {
        vigil_kube_watch_free(watches.all[i]->watch);
        free(watches.all[i]->events);
        free(watches.all[i]);
    }
    watches.count = 0;
}
