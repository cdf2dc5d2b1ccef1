#include "load/scale/follow.h"

#include "load/scale/objects.h"
#include "load/usage.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    GONE = 410,
    /* Before a watch that did not end as it was to is started again. */
    PAUSE_S = 1,
    /* By this much earlier than its timeout a watch may end. */
    EARLY_S = 2,
};

enum events { EVENTS_OTHER, EVENTS_PODS, EVENTS_SERVICES, EVENTS_SLICES };

struct row {
    const char *group, *version, *resource;
    const char *name_space; /* NULL: all */
    const char *label_selector;
    const char *field_selector; /* the name of the node follows if it ends with '=' */
    enum events events;
    uint16_t timeout_s; /* at least; at most twice that */
};

#define CONFIG(name_space, resource, name)                                                \
    {                                                                                     \
        NULL, "v1", resource, name_space, NULL, "metadata.name=" name, EVENTS_OTHER, 1800 \
    }
#define CONFIGS(name_space)                                 \
    CONFIG(name_space, "configmaps", "kube-root-ca.crt"),   \
        CONFIG(name_space, "configmaps", SCALE_CONFIG_MAP), \
        CONFIG(name_space, "secrets", SCALE_SECRET)

/* As a hollow node of Kubernetes 1.36 asks for them, and the nodes of a real kube-proxy. */
static const struct row rows[SCALE_FOLLOWS] = {
    /* kubelet */
    {NULL, "v1", "nodes", NULL, NULL, "metadata.name=", EVENTS_OTHER, 300},
    {NULL, "v1", "pods", NULL, NULL, "spec.nodeName=", EVENTS_PODS, 300},
    {NULL, "v1", "services", NULL, NULL, "spec.clusterIP!=None", EVENTS_SERVICES, 300},
    {"storage.k8s.io", "v1", "csidrivers", NULL, NULL, NULL, EVENTS_OTHER, 300},
    {"node.k8s.io", "v1", "runtimeclasses", NULL, NULL, NULL, EVENTS_OTHER, 300},
    CONFIGS(SCALE_PREFIX "0"),
    CONFIGS(SCALE_PREFIX "1"),
    CONFIGS(SCALE_PREFIX "2"),
    /* kube-proxy */
    {NULL, "v1", "services", NULL, "!service.kubernetes.io/service-proxy-name",
     "spec.clusterIP!=None", EVENTS_SERVICES, 300},
    {"discovery.k8s.io", "v1", "endpointslices", NULL, "!service.kubernetes.io/headless", NULL,
     EVENTS_SLICES, 300},
    {"networking.k8s.io", "v1", "servicecidrs", NULL, NULL, NULL, EVENTS_OTHER, 300},
    {NULL, "v1", "nodes", NULL, NULL, "metadata.name=", EVENTS_OTHER, 300},
};
_Static_assert(SCALE_NAMESPACES == 3, "a group of rows for each");

static struct scale_measures *measures_of(const struct scale_follow *follow)
{
    return follow->follower->thread->measures;
}

static void count(const struct scale_follow *follow, enum scale_count what)
{
    scale_measures_count(measures_of(follow), what);
}

static void add_delay(const struct scale_follow *follow, enum scale_measure measure,
                      uint64_t sent_ns)
{
    scale_measures_add(measures_of(follow), measure, bench_now_ns() - sent_ns);
}

/* -- Events -- */

/* Whether it was the last node to see this change of the slice. */
static void see_slice(const struct scale_follow *follow, const vigil_kube_object *slice,
                      uint64_t sent_ns)
{
    struct scale_world *world = follow->follower->thread->world;
    uint32_t index;
    if (!scale_name_number(vigil_kube_object_name(slice), SCALE_PREFIX, &index) ||
        index >= world->options->services)
        return;
    struct scale_change *change = &world->slices[index];
    if (atomic_load(&change->sent_ns) != sent_ns)
        return;
    if (atomic_fetch_add(&change->seen, 1) + 1 == atomic_load(&world->synced))
        add_delay(follow, SCALE_SLICE_LAST, sent_ns);
}

/* The state at the beginning is not complete: there is no version to continue from. */
static bool is_listing(const struct scale_follow *follow)
{
    return !follow->version[0];
}

static void see_object(struct scale_follow *follow, const vigil_kube_event *event)
{
    struct scale_follower *follower = follow->follower;
    enum events events = rows[follow->row].events;
    uint64_t sent_ns;
    if (events == EVENTS_PODS && event->type != VIGIL_KUBE_DELETED)
        follower->thread->on_pod(follower, event->object, !is_listing(follow));
    /* What a list contains is not a change whose delay is measured. */
    if (is_listing(follow) || events < EVENTS_SERVICES ||
        !scale_object_sent(event->object, &sent_ns))
        return;
    add_delay(follow, events == EVENTS_SERVICES ? SCALE_SERVICE_DELAY : SCALE_SLICE_DELAY, sent_ns);
    if (events == EVENTS_SLICES)
        see_slice(follow, event->object, sent_ns);
}

/* -- Watches -- */

static void begin(struct scale_follow *follow);

static void on_pause(struct timer *timer)
{
    begin(CONTAINER_OF(timer, struct scale_follow, pause));
}

static void see_end(struct scale_follow *follow, const vigil_kube_event *event)
{
    struct loop *loop = follow->follower->thread->loop;
    uint64_t took_ns = bench_now_ns() - follow->begun_ns;
    bool expired = follow->expired || (event->status && event->status->code == GONE);
    bool timed_out = event->end == VIGIL_KUBE_END_COMPLETE && follow->complete &&
                     took_ns + EARLY_S * NS_PER_S >= (uint64_t)follow->timeout_s * NS_PER_S;
    char why[SCALE_ERROR_BYTES];
    snprintf(why, sizeof(why), "%.200s after %.1f s",
             event->status ? event->status->message : event->reason, (double)took_ns / 1e9);
    vigil_kube_watch_free(TAKE(follow->watch));
    follow->expired = false;
    if (event->end == VIGIL_KUBE_END_CANCELED)
        return;
    if (timed_out) {
        count(follow, SCALE_WATCHES_TIMED_OUT);
        begin(follow);
        return;
    }
    if (expired) {
        count(follow, SCALE_RELISTS);
        follow->version[0] = 0;
    } else {
        scale_measures_end(measures_of(follow), rows[follow->row].resource, why);
    }
    loop_timer_set(loop, &follow->pause, loop_now_ns(loop) + PAUSE_S * NS_PER_S);
}

static void see_bookmark(struct scale_follow *follow, const vigil_kube_event *event)
{
    struct scale_follower *follower = follow->follower;
    count(follow, SCALE_BOOKMARKS);
    if (!event->initial_end)
        return;
    scale_measures_add(measures_of(follow), SCALE_LIST, bench_now_ns() - follow->begun_ns);
    if (follow->complete)
        return;
    follow->complete = true;
    follower->on_complete(follower);
}

static int on_event(vigil_kube_watch *watch, const vigil_kube_event *event, void *user)
{
    struct scale_follow *follow = user;
    (void)watch;
    if (event->version.size && event->version.size < sizeof(follow->version) &&
        (!is_listing(follow) || event->initial_end)) {
        memcpy(follow->version, event->version.data, event->version.size);
        follow->version[event->version.size] = 0;
    }
    switch (event->type) {
    case VIGIL_KUBE_BOOKMARK:
        see_bookmark(follow, event);
        break;
    case VIGIL_KUBE_ERROR:
        follow->expired = event->status->code == GONE;
        break;
    case VIGIL_KUBE_ENDED:
        see_end(follow, event);
        break;
    default:
        count(follow, SCALE_EVENTS);
        see_object(follow, event);
    }
    return VIGIL_KUBE_CONTINUE;
}

static void begin(struct scale_follow *follow)
{
    const struct row *row = &rows[follow->row];
    struct scale_follower *follower = follow->follower;
    vigil_kube_watch_options options;
    char selector[64 + SCALE_NAME_BYTES] = "";
    if (row->field_selector) {
        bool by_node = row->field_selector[strlen(row->field_selector) - 1] == '=';
        snprintf(selector, sizeof(selector), "%s%s", row->field_selector,
                 by_node ? follower->name : "");
    }
    follow->timeout_s =
        (uint16_t)random_between(&follower->thread->random, row->timeout_s, 2 * row->timeout_s);
    follow->begun_ns = bench_now_ns();
    vigil_kube_watch_options_init(&options);
    options.target = (vigil_kube_target){.group = row->group,
                                         .version = row->version,
                                         .resource = row->resource,
                                         .name_space = row->name_space};
    options.label_selector = row->label_selector;
    options.field_selector = selector[0] ? selector : NULL;
    options.timeout_s = follow->timeout_s;
    options.protobuf = 1;
    if (is_listing(follow))
        options.initial_events = 1;
    else
        options.version = follow->version;
    int code = vigil_kube_watch_new(follower->kube, &options, on_event, follow, &follow->watch);
    if (code != VIGIL_OK)
        scale_measures_error(measures_of(follow), row->resource, "the watch was not started");
}

void scale_follow_start(struct scale_follow *follow, struct scale_follower *follower, uint8_t row)
{
    *follow = (struct scale_follow){.follower = follower, .pause.fn = on_pause, .row = row};
    begin(follow);
}

void scale_follow_stop(struct scale_follow *follow)
{
    if (!follow->follower)
        return;
    loop_timer_cancel(follow->follower->thread->loop, &follow->pause);
    vigil_kube_watch_free(TAKE(follow->watch));
    follow->follower = NULL;
}
