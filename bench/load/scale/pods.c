#include "load/scale/pods.h"

#include "base/xalloc.h"
#include "load/scale/call.h"
#include "load/scale/objects.h"
#include "load/usage.h"

#include <vigil/kube/protobuf.h>

enum {
    NOT_FOUND = 404,
    FLYING_MAX = 200, /* pods of a thread that are being created */
    RETRY_S = 1,
    NODES_APART = 7919, /* from the node of a pod to that of the next one in its slot */
};

enum pod_state {
    POD_FREE,
    POD_CREATING,
    POD_BINDING,
    POD_BOUND,
    POD_STARTING,
    POD_READY,
    POD_DELETING,
    POD_ENDING,
};

#define TO(state) (1u << POD_##state)

/* Drawn in pods.h. The event of a binding may come before its answer, and a call that fails is
 * repeated from the state before. */
static const unsigned moves[] = {
    [POD_FREE] = TO(CREATING),
    [POD_CREATING] = TO(BINDING) | TO(FREE),
    [POD_BINDING] = TO(BOUND) | TO(STARTING),
    [POD_BOUND] = TO(STARTING),
    [POD_STARTING] = TO(READY) | TO(BOUND),
    [POD_READY] = TO(DELETING),
    [POD_DELETING] = TO(ENDING) | TO(FREE),
    [POD_ENDING] = TO(FREE) | TO(DELETING),
};

/* The calls of a node. It reads a pod before each patch. */
enum step { STEP_READ, STEP_PENDING, STEP_RUNNING, STEP_ENDED, STEP_DELETE, STEP_LAST };

struct pod {
    struct scale_pods *pods;
    enum pod_state state;
    uint32_t generation;
    uint8_t step;        /* number of the node's next call while starting or ending */
    bool asked;          /* the call that binds or deletes it is under way */
    uint64_t created_ns; /* when its creation was sent */
    uint64_t sent_ns;    /* when the last call was sent whose event is awaited; 0: none is */
    struct timer again;  /* after a failure */
    char uid[40];
};

struct scale_pods {
    struct scale_thread *thread;
    struct scale_node *nodes;
    uint32_t node_count, count;
    vigil_kube *kube; /* NULL: stopped */
    uint32_t filled;  /* slots that have been used */
    uint32_t flying;
    uint32_t next; /* slot whose pod is replaced next */
    struct scale_pace filling, replacing;
    struct pod pod[];
};

static uint32_t slot_of(const struct pod *pod)
{
    return (uint32_t)(pod - pod->pods->pod);
}

static struct scale_node *node_of(const struct pod *pod)
{
    const struct scale_pods *pods = pod->pods;
    uint64_t at = slot_of(pod) + (uint64_t)pod->generation * NODES_APART;
    return &pods->nodes[at % pods->node_count];
}

/* Its name has the number of a node of this thread, so that threads do not collide. */
struct names {
    char name[SCALE_NAME_BYTES + 24], name_space[SCALE_NAME_BYTES];
};

static vigil_kube_target target_of(const struct pod *pod, struct names *names)
{
    snprintf(names->name, sizeof(names->name), SCALE_POD_PREFIX "%0*u-%u-%u", SCALE_DIGITS,
             slot_of(pod), pod->pods->nodes[0].number, pod->generation);
    snprintf(names->name_space, sizeof(names->name_space), SCALE_PREFIX "%u",
             slot_of(pod) % SCALE_NAMESPACES);
    return (vigil_kube_target){
        .version = "v1", .resource = "pods", .name_space = names->name_space, .name = names->name};
}

static vigil_bytes scratch_of(const struct pod *pod)
{
    const struct buf *scratch = &pod->pods->thread->scratch;
    return vigil_bytes_of(scratch->ptr, scratch->len);
}

static void move(struct pod *pod, enum pod_state next)
{
    struct scale_world *world = pod->pods->thread->world;
    bool flew = pod->state >= POD_CREATING && pod->state < POD_READY;
    bool flies = next >= POD_CREATING && next < POD_READY;
    pod->pods->flying += (uint32_t)flies - (uint32_t)flew;
    if (next == POD_READY)
        atomic_fetch_add(&world->pods_ready, 1);
    else if (pod->state == POD_READY)
        atomic_fetch_sub(&world->pods_ready, 1);
    STATE_MOVE(pod->state, moves, next);
}

static void try_again(struct pod *pod)
{
    struct loop *loop = pod->pods->thread->loop;
    loop_timer_set(loop, &pod->again, loop_now_ns(loop) + RETRY_S * NS_PER_S);
}

static bool is_stopped(const struct pod *pod)
{
    return !pod->pods->kube;
}

/* -- At its node -- */

static void step(struct pod *pod);

static void end(struct pod *pod)
{
    move(pod, POD_FREE);
    pod->generation++;
    try_again(pod);
}

/* If the node was restarted, its first list shows the pod again; otherwise the timer repeats this.
 */
static void fail_step(struct pod *pod)
{
    move(pod, pod->state == POD_STARTING ? POD_BOUND : POD_DELETING);
    try_again(pod);
}

static void on_step(void *owner, vigil_kube_call *call, int code)
{
    struct pod *pod = owner;
    (void)call;
    if (is_stopped(pod))
        return;
    if (code == NOT_FOUND && pod->state == POD_ENDING) {
        end(pod);
    } else if (code) {
        fail_step(pod);
    } else {
        pod->step++;
        step(pod);
    }
}

static vigil_kube_call *patch_of(const struct pod *pod, const vigil_kube_target *target)
{
    vigil_kube_target status = *target;
    status.subresource = "status";
    return vigil_kube_patch(node_of(pod)->follower.kube, &status, VIGIL_KUBE_PATCH_STRATEGIC,
                            scratch_of(pod), NULL);
}

static vigil_kube_call *call_of(struct pod *pod, enum step step, const vigil_kube_target *target)
{
    static const int64_t now = 0;
    struct scale_thread *thread = pod->pods->thread;
    struct scale_node *node = node_of(pod);
    vigil_kube_delete_options options = {
        .size = sizeof(options), .grace_period_s = &now, .uid = pod->uid};
    switch (step) {
    case STEP_PENDING:
        scale_pod_pending_write(&thread->scratch, node->number);
        return patch_of(pod, target);
    case STEP_RUNNING:
        scale_pod_ready_write(&thread->scratch, node->number);
        return patch_of(pod, target);
    case STEP_ENDED:
        scale_pod_ended_write(&thread->scratch);
        return patch_of(pod, target);
    case STEP_DELETE:
        return vigil_kube_delete(node->follower.kube, target, &options);
    default:
        return vigil_kube_get(node->follower.kube, target);
    }
}

/* The node's next call. */
static void step(struct pod *pod)
{
    static const enum step starting[] = {STEP_READ, STEP_PENDING, STEP_READ, STEP_RUNNING,
                                         STEP_LAST};
    static const enum step ending[] = {STEP_READ, STEP_ENDED, STEP_DELETE, STEP_LAST};
    static const enum scale_measure measures[] = {
        [STEP_READ] = SCALE_GET,           [STEP_PENDING] = SCALE_POD_STATUS,
        [STEP_RUNNING] = SCALE_POD_STATUS, [STEP_ENDED] = SCALE_POD_STATUS,
        [STEP_DELETE] = SCALE_POD_DELETE,
    };
    struct scale_thread *thread = pod->pods->thread;
    struct names names = {.name = ""};
    vigil_kube_target target = target_of(pod, &names);
    bool starts = pod->state == POD_STARTING;
    enum step next = starts ? starting[pod->step] : ending[pod->step];
    if (next == STEP_LAST && starts) {
        move(pod, POD_READY);
        scale_measures_add(thread->measures, SCALE_POD_READY, bench_now_ns() - pod->created_ns);
    } else if (next == STEP_LAST) {
        end(pod);
    } else if (!node_of(pod)->follower.kube) {
        fail_step(pod); /* the node is being restarted */
    } else {
        scale_call_start(thread, measures[next], call_of(pod, next, &target),
                         starts ? 0 : NOT_FOUND, on_step, pod);
    }
}

static void begin_steps(struct pod *pod, enum pod_state state)
{
    move(pod, state);
    loop_timer_cancel(pod->pods->thread->loop, &pod->again);
    pod->step = 0;
    step(pod);
}

static void add_delay(struct pod *pod)
{
    if (pod->sent_ns)
        scale_measures_add(pod->pods->thread->measures, SCALE_POD_DELAY,
                           bench_now_ns() - pod->sent_ns);
    pod->sent_ns = 0;
}

/* metadata.deletionTimestamp */
static bool is_deleting(const vigil_kube_object *object)
{
    vigil_pb_value value;
    return vigil_pb_find(vigil_kube_object_protobuf(object), "1.9", &value);
}

/* Which pod of this thread it is; NULL: an earlier one. */
static struct pod *find(struct scale_pods *pods, const vigil_kube_object *object)
{
    uint32_t slot;
    struct names names = {.name = ""};
    vigil_bytes name = vigil_kube_object_name(object);
    if (!scale_name_number(name, SCALE_POD_PREFIX, &slot) || slot >= pods->count)
        return NULL;
    (void)target_of(&pods->pod[slot], &names);
    bool same = strlen(names.name) == name.size && memcmp(names.name, name.data, name.size) == 0;
    return same ? &pods->pod[slot] : NULL;
}

void scale_pods_see(struct scale_pods *pods, struct scale_node *node,
                    const vigil_kube_object *object, bool is_change)
{
    struct pod *pod = find(pods, object);
    if (!pod || is_stopped(pod) || node_of(pod) != node)
        return;
    if (!is_change)
        pod->sent_ns = 0; /* a part of a list, which the node was too late to see as an event */
    if (pod->state == POD_BINDING || pod->state == POD_BOUND) {
        add_delay(pod);
        begin_steps(pod, POD_STARTING);
    } else if (pod->state == POD_DELETING && is_deleting(object)) {
        add_delay(pod);
        begin_steps(pod, POD_ENDING);
    }
}

/* -- By the scheduler and controllers -- */

static void bind(struct pod *pod);

static void on_created(void *owner, vigil_kube_call *call, int code)
{
    struct pod *pod = owner;
    const vigil_kube_object *object = vigil_kube_call_object(call);
    if (is_stopped(pod))
        return;
    if (code || !object) {
        move(pod, POD_FREE);
        pod->generation++;
        try_again(pod);
        return;
    }
    vigil_bytes uid = vigil_kube_object_uid(object);
    snprintf(pod->uid, sizeof(pod->uid), "%.*s", (int)uid.size, (const char *)uid.data);
    move(pod, POD_BINDING);
    pod->sent_ns = bench_now_ns();
    bind(pod);
}

static void create(struct pod *pod)
{
    struct scale_thread *thread = pod->pods->thread;
    struct names names = {.name = ""};
    vigil_kube_target target = target_of(pod, &names);
    move(pod, POD_CREATING);
    pod->created_ns = bench_now_ns();
    scale_pod_write(&thread->scratch, names.name);
    target.name = NULL;
    scale_call_start(thread, SCALE_POD_CREATE,
                     vigil_kube_create(pod->pods->kube, &target, scratch_of(pod), NULL), 0,
                     on_created, pod);
}

static void on_bound(void *owner, vigil_kube_call *call, int code)
{
    struct pod *pod = owner;
    (void)call;
    pod->asked = false;
    if (is_stopped(pod) || pod->state != POD_BINDING)
        return; /* its node has seen it already */
    if (code)
        try_again(pod);
    else
        move(pod, POD_BOUND);
}

static void bind(struct pod *pod)
{
    struct scale_thread *thread = pod->pods->thread;
    struct names names = {.name = ""};
    vigil_kube_target target = target_of(pod, &names);
    if (pod->asked)
        return;
    pod->asked = true;
    target.subresource = "binding";
    scale_binding_write(&thread->scratch, names.name, node_of(pod)->follower.name);
    scale_call_start(thread, SCALE_POD_BIND,
                     vigil_kube_create(pod->pods->kube, &target, scratch_of(pod), NULL), 0,
                     on_bound, pod);
}

static void on_deleted(void *owner, vigil_kube_call *call, int code)
{
    struct pod *pod = owner;
    (void)call;
    pod->asked = false;
    if (!is_stopped(pod) && pod->state == POD_DELETING && code)
        try_again(pod);
}

static void remove_pod(struct pod *pod)
{
    struct names names = {.name = ""};
    vigil_kube_target target = target_of(pod, &names);
    if (pod->asked)
        return;
    pod->asked = true;
    scale_call_start(pod->pods->thread, SCALE_POD_DELETE,
                     vigil_kube_delete(pod->pods->kube, &target, NULL), NOT_FOUND, on_deleted, pod);
}

/* What has failed is repeated; a pod that is gone gets its successor. */
static void on_again(struct timer *timer)
{
    struct pod *pod = CONTAINER_OF(timer, struct pod, again);
    if (is_stopped(pod))
        return;
    switch (pod->state) {
    case POD_FREE:
        create(pod);
        break;
    case POD_BINDING:
        bind(pod);
        break;
    case POD_BOUND:
        begin_steps(pod, POD_STARTING);
        break;
    case POD_DELETING:
        begin_steps(pod, POD_ENDING);
        break;
    default:
        break;
    }
}

/* -- Life -- */

struct scale_pods *scale_pods_new(struct scale_thread *thread, struct scale_node *nodes,
                                  uint32_t node_count, uint32_t pod_count)
{
    struct scale_pods *pods = xcalloc(1, sizeof(*pods) + pod_count * sizeof(pods->pod[0]));
    pods->thread = thread;
    pods->nodes = nodes;
    pods->node_count = node_count;
    pods->count = pod_count;
    for (uint32_t i = 0; i < pod_count; i++) {
        pods->pod[i].pods = pods;
        pods->pod[i].again.fn = on_again;
    }
    return pods;
}

void scale_pods_free(struct scale_pods *pods)
{
    free(pods);
}

void scale_pods_start(struct scale_pods *pods, vigil_kube *kube)
{
    pods->kube = kube;
}

void scale_pods_stop(struct scale_pods *pods)
{
    if (!pods)
        return;
    pods->kube = NULL;
    for (uint32_t i = 0; i < pods->count; i++)
        loop_timer_cancel(pods->thread->loop, &pods->pod[i].again);
}

static void replace_next(struct scale_pods *pods)
{
    struct pod *pod = &pods->pod[pods->next];
    pods->next = (pods->next + 1) % pods->count;
    if (pod->state != POD_READY)
        return;
    move(pod, POD_DELETING);
    pod->sent_ns = bench_now_ns();
    remove_pod(pod);
}

void scale_pods_tick(struct scale_pods *pods, int64_t now_ns)
{
    const struct scale_world *world = pods->thread->world;
    unsigned phase = atomic_load(&world->phase);
    if (!pods->kube || pods->count == 0 || phase < SCALE_FILLING || phase > SCALE_STEADY)
        return;
    double part = (double)pods->count / (double)world->pods;
    double fills =
        (double)world->options->start_rate * (double)world->pods / (double)world->nodes * part;
    for (uint64_t due = scale_pace_due(&pods->filling, fills, now_ns);
         due && pods->filled < pods->count && pods->flying < FLYING_MAX; due--) {
        pods->filling.done++;
        create(&pods->pod[pods->filled++]);
    }
    if (phase != SCALE_STEADY)
        return;
    for (uint64_t due = scale_pace_due(&pods->replacing, world->lives_per_second * part, now_ns);
         due; due--) {
        pods->replacing.done++;
        replace_next(pods);
    }
}
