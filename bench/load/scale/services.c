#include "load/scale/services.h"

#include "base/xalloc.h"
#include "load/scale/call.h"
#include "load/scale/objects.h"
#include "load/usage.h"

enum { VERSION_BYTES = 24 };

/* A service, or an endpoint slice. */
struct changed {
    struct scale_services *services;
    uint32_t number;
    bool is_slice;
    bool changing;               /* a call about it is under way */
    bool reading;                /* it is read for its version, and then changed */
    char version[VERSION_BYTES]; /* "": it must be read */
};

struct scale_services {
    struct scale_thread *thread;
    vigil_kube *kube; /* NULL: stopped */
    uint32_t count;   /* number of services, and of slices */
    uint32_t next;
    struct scale_pace pace;
    struct changed all[]; /* the services, then the slices */
};

static vigil_kube_target target_of(const struct changed *c, char name[static SCALE_NAME_BYTES],
                                   char name_space[static SCALE_NAME_BYTES])
{
    scale_name_write(name, SCALE_PREFIX, c->number);
    snprintf(name_space, SCALE_NAME_BYTES, SCALE_PREFIX "%u", c->number % SCALE_NAMESPACES);
    return (vigil_kube_target){.group = c->is_slice ? "discovery.k8s.io" : NULL,
                               .version = "v1",
                               .resource = c->is_slice ? "endpointslices" : "services",
                               .name_space = name_space,
                               .name = name};
}

static void change(struct changed *c);

static void on_answer(void *owner, vigil_kube_call *call, int code)
{
    struct changed *c = owner;
    bool was_read = c->reading;
    c->changing = c->reading = false;
    c->version[0] = 0;
    if (code == 0)
        scale_call_version(call, c->version, sizeof(c->version));
    if (was_read && c->version[0] && c->services->kube)
        change(c);
}

/* A change of a slice is followed to the last node. */
static void note_change(struct scale_services *services, uint32_t number, uint64_t sent_ns)
{
    struct scale_world *world = services->thread->world;
    struct scale_change *change = &world->slices[number];
    if (atomic_load(&change->sent_ns) && atomic_load(&change->seen) < atomic_load(&world->synced))
        scale_measures_count(services->thread->measures, SCALE_SLICES_UNSEEN);
    atomic_store(&change->sent_ns, 0);
    atomic_store(&change->seen, 0);
    atomic_store(&change->sent_ns, sent_ns);
}

static void change(struct changed *c)
{
    struct scale_services *services = c->services;
    struct scale_thread *thread = services->thread;
    char name[SCALE_NAME_BYTES], name_space[SCALE_NAME_BYTES];
    vigil_kube_target target = target_of(c, name, name_space);
    uint64_t sent_ns = bench_now_ns();
    if (c->changing) {
        scale_measures_count(thread->measures, SCALE_CHANGES_MISSED);
        return;
    }
    c->changing = true;
    if (!c->version[0]) {
        c->reading = true;
        scale_call_start(thread, SCALE_GET, vigil_kube_get(services->kube, &target), 0, on_answer,
                         c);
        return;
    }
    if (c->is_slice) {
        scale_slice_write(&thread->scratch, c->number, c->version, sent_ns);
        note_change(services, c->number, sent_ns);
    } else {
        scale_service_write(&thread->scratch, c->number, c->version, sent_ns);
    }
    vigil_bytes object = vigil_bytes_of(thread->scratch.ptr, thread->scratch.len);
    scale_call_start(thread, c->is_slice ? SCALE_SLICE_UPDATE : SCALE_SERVICE_UPDATE,
                     vigil_kube_update(services->kube, &target, object, NULL), 0, on_answer, c);
}

struct scale_services *scale_services_new(struct scale_thread *thread)
{
    uint32_t count = (uint32_t)thread->world->options->services;
    struct scale_services *services =
        xcalloc(1, sizeof(*services) + (size_t)2 * count * sizeof(services->all[0]));
    services->thread = thread;
    services->count = count;
    for (uint32_t i = 0; i < 2 * count; i++)
        services->all[i] =
            (struct changed){.services = services, .number = i % count, .is_slice = i >= count};
    return services;
}

void scale_services_free(struct scale_services *services)
{
    free(services);
}

void scale_services_start(struct scale_services *services, vigil_kube *kube)
{
    services->kube = kube;
}

void scale_services_stop(struct scale_services *services)
{
    if (services)
        services->kube = NULL;
}

void scale_services_tick(struct scale_services *services, int64_t now_ns)
{
    const struct scale_world *world = services->thread->world;
    if (!services->kube || services->count == 0 || atomic_load(&world->phase) != SCALE_STEADY)
        return;
    for (uint64_t due = scale_pace_due(&services->pace, world->services_per_second, now_ns); due;
         due--) {
        services->pace.done++;
        change(&services->all[services->next]);
        change(&services->all[services->count + services->next]);
        services->next = (services->next + 1) % services->count;
    }
}
