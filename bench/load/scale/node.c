#include "load/scale/node.h"

#include "load/scale/call.h"
#include "load/scale/objects.h"
#include "load/usage.h"

enum {
    NOT_FOUND = 404,
    CONFLICT = 409,
    RENEW_S = 10,
    RENEW_JITTER_MS = 400, /* at most so much later, as a kubelet does */
    REPORT_S = 300,
    RETRY_S = 1,
};

#define TO(state) (1u << SCALE_NODE_##state)

/* Drawn in node.h. */
static const unsigned moves[] = {
    [SCALE_NODE_STOPPED] = TO(STARTING),
    [SCALE_NODE_STARTING] = TO(RUNNING) | TO(STOPPED),
    [SCALE_NODE_RUNNING] = TO(STOPPED),
};

static struct scale_thread *thread_of(const struct scale_node *node)
{
    return node->follower.thread;
}

static void set_timer(struct scale_node *node, struct timer *timer, int64_t after_ns)
{
    struct loop *loop = thread_of(node)->loop;
    loop_timer_set(loop, timer, loop_now_ns(loop) + after_ns);
}

static bool is_settling(const struct scale_node *node)
{
    return atomic_load(&thread_of(node)->world->phase) == SCALE_SETTLING;
}

static vigil_bytes scratch_of(const struct scale_node *node)
{
    const struct buf *scratch = &thread_of(node)->scratch;
    return vigil_bytes_of(scratch->ptr, scratch->len);
}

static vigil_kube_target node_target(const struct scale_node *node)
{
    return (vigil_kube_target){.version = "v1", .resource = "nodes", .name = node->follower.name};
}

static vigil_kube_target lease_target(const struct scale_node *node)
{
    return (vigil_kube_target){.group = "coordination.k8s.io",
                               .version = "v1",
                               .resource = "leases",
                               .name_space = SCALE_LEASES,
                               .name = node->follower.name};
}

/* -- Running -- */

static void check_running(struct scale_node *node)
{
    struct scale_thread *thread = thread_of(node);
    if (node->state != SCALE_NODE_STARTING || !node->registered || node->incomplete)
        return;
    STATE_MOVE(node->state, moves, SCALE_NODE_RUNNING);
    scale_measures_add(thread->measures, node->known ? SCALE_NODE_RESYNC : SCALE_NODE_SYNC,
                       bench_now_ns() - node->started_ns);
    node->known = true;
    atomic_fetch_add(&thread->world->synced, 1);
}

static void on_complete(struct scale_follower *follower)
{
    struct scale_node *node = CONTAINER_OF(follower, struct scale_node, follower);
    node->incomplete--;
    check_running(node);
}

/* -- The Lease -- */

static void plan_renewal(struct scale_node *node, bool soon)
{
    int64_t jitter = random_between(&thread_of(node)->random, 0, RENEW_JITTER_MS);
    set_timer(node, &node->renewal,
              soon ? RETRY_S * NS_PER_S : RENEW_S * NS_PER_S + jitter * NS_PER_MS);
}

/* Answers about the Lease. */
static bool lease_answered(struct scale_node *node)
{
    node->renewing = false;
    return node->state != SCALE_NODE_STOPPED;
}

static void on_renewed(void *owner, vigil_kube_call *call, int code)
{
    struct scale_node *node = owner;
    if (!lease_answered(node))
        return;
    if (code == 0)
        scale_call_version(call, node->version, sizeof(node->version));
    else
        node->version[0] = 0; /* it is read before the next renewal */
}

static void on_lease_created(void *owner, vigil_kube_call *call, int code)
{
    struct scale_node *node = owner;
    if (!lease_answered(node) || code)
        return; /* with an error the timer tries again */
    scale_call_version(call, node->version, sizeof(node->version));
    node->registered = true;
    check_running(node);
}

static void on_lease_read(void *owner, vigil_kube_call *call, int code)
{
    struct scale_node *node = owner;
    struct scale_thread *thread = thread_of(node);
    if (!lease_answered(node))
        return;
    if (code == 0) {
        scale_call_version(call, node->version, sizeof(node->version));
        node->registered = true;
        check_running(node);
    } else if (code == NOT_FOUND) {
        vigil_kube_target leases = lease_target(node);
        leases.name = NULL;
        node->renewing = true;
        scale_lease_write(&thread->scratch, node->follower.name, node->uid, "");
        scale_call_start(thread, SCALE_REGISTER,
                         vigil_kube_create(node->follower.kube, &leases, scratch_of(node), NULL), 0,
                         on_lease_created, node);
    }
}

static void read_lease(struct scale_node *node)
{
    vigil_kube_target lease = lease_target(node);
    node->renewing = true;
    scale_call_start(thread_of(node), SCALE_GET, vigil_kube_get(node->follower.kube, &lease),
                     NOT_FOUND, on_lease_read, node);
}

static void renew(struct scale_node *node)
{
    struct scale_thread *thread = thread_of(node);
    vigil_kube_target lease = lease_target(node);
    node->renewing = true;
    scale_lease_write(&thread->scratch, node->follower.name, node->uid, node->version);
    scale_call_start(thread, SCALE_RENEW,
                     vigil_kube_update(node->follower.kube, &lease, scratch_of(node), NULL), 0,
                     on_renewed, node);
}

/* -- Registering -- */

static void on_node_read(void *owner, vigil_kube_call *call, int code)
{
    struct scale_node *node = owner;
    const vigil_kube_object *object = vigil_kube_call_object(call);
    if (!lease_answered(node) || code || !object)
        return;
    vigil_bytes uid = vigil_kube_object_uid(object);
    snprintf(node->uid, sizeof(node->uid), "%.*s", (int)uid.size, (const char *)uid.data);
    read_lease(node);
}

static void on_node_created(void *owner, vigil_kube_call *call, int code)
{
    struct scale_node *node = owner;
    if (code != CONFLICT) {
        on_node_read(owner, call, code);
        return;
    }
    if (!lease_answered(node))
        return;
    vigil_kube_target target = node_target(node);
    node->renewing = true;
    scale_call_start(thread_of(node), SCALE_GET, vigil_kube_get(node->follower.kube, &target), 0,
                     on_node_read, node);
}

static void create_node(struct scale_node *node)
{
    struct scale_thread *thread = thread_of(node);
    vigil_kube_target nodes = node_target(node);
    nodes.name = NULL;
    node->renewing = true;
    scale_node_write(&thread->scratch, node->follower.name, node->number);
    scale_call_start(thread, SCALE_REGISTER,
                     vigil_kube_create(node->follower.kube, &nodes, scratch_of(node), NULL),
                     CONFLICT, on_node_created, node);
}

static void on_renewal(struct timer *timer)
{
    struct scale_node *node = CONTAINER_OF(timer, struct scale_node, renewal);
    struct scale_measures *measures = thread_of(node)->measures;
    plan_renewal(node, !node->registered);
    if (node->state == SCALE_NODE_RUNNING && is_settling(node))
        return;
    if (node->registered)
        scale_measures_count(measures, SCALE_RENEWALS_DUE);
    if (node->renewing) {
        if (node->registered)
            scale_measures_count(measures, SCALE_RENEWALS_MISSED);
    } else if (!node->uid[0]) {
        create_node(node);
    } else if (!node->version[0]) {
        read_lease(node);
    } else {
        renew(node);
    }
}

/* -- The status -- */

static void on_reported(void *owner, vigil_kube_call *call, int code)
{
    struct scale_node *node = owner;
    (void)call, (void)code;
    node->reporting = false;
}

static void on_report(struct timer *timer)
{
    struct scale_node *node = CONTAINER_OF(timer, struct scale_node, report);
    struct scale_thread *thread = thread_of(node);
    vigil_kube_target target = node_target(node);
    set_timer(node, timer, REPORT_S * NS_PER_S);
    if (!node->registered || node->reporting || is_settling(node))
        return;
    node->reporting = true;
    target.subresource = "status";
    scale_node_status_write(&thread->scratch);
    scale_call_start(thread, SCALE_NODE_STATUS,
                     vigil_kube_patch(node->follower.kube, &target, VIGIL_KUBE_PATCH_STRATEGIC,
                                      scratch_of(node), NULL),
                     0, on_reported, node);
}

/* -- Life -- */

void scale_node_init(struct scale_node *node, struct scale_thread *thread, uint32_t number)
{
    node->number = number;
    node->renewal.fn = on_renewal;
    node->report.fn = on_report;
    node->follower.thread = thread;
    node->follower.on_complete = on_complete;
    scale_name_write(node->follower.name, SCALE_NODE_PREFIX, number);
}

void scale_node_start(struct scale_node *node, vigil_kube *kube)
{
    struct scale_thread *thread = thread_of(node);
    STATE_MOVE(node->state, moves, SCALE_NODE_STARTING);
    node->follower.kube = kube;
    node->started_ns = bench_now_ns();
    node->registered = node->renewing = node->reporting = false;
    node->uid[0] = node->version[0] = 0;
    node->incomplete = SCALE_FOLLOWS;
    for (unsigned i = 0; i < SCALE_FOLLOWS; i++)
        scale_follow_start(&node->follows[i], &node->follower, (uint8_t)i);
    create_node(node);
    /* Nodes that start together renew their Leases and report one after the other. */
    set_timer(node, &node->renewal,
              random_between(&thread->random, RETRY_S * NS_PER_S, RENEW_S * NS_PER_S));
    set_timer(node, &node->report, random_between(&thread->random, 0, REPORT_S * NS_PER_S));
}

void scale_node_stop(struct scale_node *node)
{
    struct scale_thread *thread = thread_of(node);
    if (node->state == SCALE_NODE_STOPPED)
        return;
    if (node->state == SCALE_NODE_RUNNING)
        atomic_fetch_sub(&thread->world->synced, 1);
    STATE_MOVE(node->state, moves, SCALE_NODE_STOPPED);
    loop_timer_cancel(thread->loop, &node->renewal);
    loop_timer_cancel(thread->loop, &node->report);
    for (size_t i = 0; i < SCALE_FOLLOWS; i++)
        scale_follow_stop(&node->follows[i]);
    node->follower.kube = NULL;
}
