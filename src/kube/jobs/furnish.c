#include "kube/jobs/furnish.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/xalloc.h"
#include "engine/forward.h"
#include "kube/jobs/job.h"
#include "kube/jobs/manager_lease.h"
#include "kube/object/object.h"
#include "kube/object/strategy.h"
#include "kube/start/start.h"

enum { ARENA_BYTES_MAX = 4 << 20, ATTEMPTS_MAX = 10 };

static const struct {
    const char *plural, *name;
} objects[] = {
    {"serviceaccounts", "default"},
    {"configmaps", "kube-root-ca.crt"},
};

enum furnish_step { READ_LEASE, READ_NAMESPACE, LOOK, WRITE };

struct furnish {
    struct kube_job job;
    struct buf names; /* of the namespaces to do, each with a zero at its end */
    enum furnish_step step;
    struct kube_manager_lease lease;
    int64_t namespace_revision;
    size_t object; /* the next one of this namespace */
    unsigned attempts;
    struct buf value;
};

static struct furnish *furnish_of(struct kube_job *job)
{
    return CONTAINER_OF(job, struct furnish, job);
}

static void furnish_fini(struct kube_job *job)
{
    buf_fini(&furnish_of(job)->names);
    buf_fini(&furnish_of(job)->value);
}

static struct slice current(const struct furnish *f)
{
    return slice_from_text((const char *)f->names.ptr);
}

static void next_namespace(struct furnish *f)
{
    buf_consume(&f->names, current(f).len + 1);
    f->step = READ_LEASE;
    f->object = 0;
    f->attempts = 0;
}

/* Without memory the process stops. */
static struct slice key_of(struct furnish *f, const char *prefix, struct slice namespace,
                           struct slice name)
{
    struct slice key;
    if (kube_key_make(&f->job.arena, prefix, namespace, name, &key) != ST_OK)
        xalloc_check(NULL, ARENA_BYTES_MAX);
    return key;
}

static const struct kube_kind *kind_of(const struct furnish *f)
{
    return kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"),
                             slice_from_text(objects[f->object].plural));
}

static struct slice object_key(struct furnish *f)
{
    return key_of(f, kind_of(f)->storage_prefix, current(f),
                  slice_from_text(objects[f->object].name));
}

/* -- Reading -- */

static void on_read(struct engine_op *op)
{
    struct kube_job *job = kube_job_of_range(op);
    struct furnish *f = furnish_of(job);
    int64_t now_ns = loop_now_ns(job->api->loop);
    struct slice field;
    struct kube_kv kv = {0};
    struct kube_object object;
    bool found = op->status == ST_OK && engine_range_next(&job->range, &field);
    if (found)
        kv = kube_kv_of(field);
    if (job->range.op.status != ST_OK) {
        /* Another creation, or the next start, tries again. */
        next_namespace(f);
    } else if (f->step == READ_LEASE) {
        kube_manager_lease_note(&f->lease, kv.mod_revision, kv.value, now_ns,
                                clock_real_ns(job->api->clock));
        if (kube_manager_lease_held(&f->lease, now_ns))
            next_namespace(f);
        else
            f->step = READ_NAMESPACE;
    } else if (f->step == READ_NAMESPACE) {
        /* One that is not JSON belongs to a kube-apiserver. */
        f->namespace_revision = kv.mod_revision;
        if (found && kube_object_parse(kv.value, &object) == ST_OK &&
            !kube_object_is_deleting(&object))
            f->step = LOOK;
        else
            next_namespace(f);
    } else if (found) {
        f->object++;
    } else {
        f->step = WRITE;
    }
    engine_range_close(&job->range);
    kube_job_next(job);
}

static void read_key(struct furnish *f, struct slice key)
{
    f->job.request = (struct pb_range_request){.key = key};
    kube_job_read(&f->job, on_read);
}

/* -- Writing -- */

static bool make_value(struct furnish *f)
{
    struct kube_api *api = f->job.api;
    struct kube_status status = {0};
    struct kube_meta meta = {
        .arena = &f->job.arena,
        .kind = kind_of(f),
        .namespace = current(f),
        .now_s = clock_real_ns(api->clock) / NS_PER_S,
        .random = &api->random,
        .status = &status,
    };
    struct json_node *metadata, *data, *object = json_node_new(&f->job.arena, JSON_TYPE_OBJECT);
    bool has_data = strcmp(objects[f->object].plural, "configmaps") == 0;
    buf_reset(&f->value, SIZE_MAX);
    return object && kube_meta_object(&meta, object, "metadata", &metadata) &&
           kube_meta_set_text(&meta, metadata, "name", slice_from_text(objects[f->object].name)) &&
           (!has_data ||
            (kube_meta_object(&meta, object, "data", &data) &&
             kube_meta_set_text(&meta, data, "ca.crt", api->config->start->root_ca))) &&
           kube_meta_check(&meta, object) && kube_meta_create(&meta, object) &&
           kube_strategy_create(&meta, object) && kube_meta_order(&meta, object) &&
           json_tree_write(object, &f->value) == ST_OK;
}

static void on_written(struct engine_op *op)
{
    struct kube_job *job = kube_job_of_write(op);
    struct furnish *f = furnish_of(job);
    struct kube_kv stored = {0};
    bool wrote = op->status == ST_OK && kube_write_succeeded(&job->write, &stored);
    if (op->status != ST_OK)
        log_warn("cannot make an object of a new namespace", LOG_SLICE("namespace", current(f)),
                 LOG_TEXT("object", objects[f->object].name),
                 LOG_TEXT("why", status_text(op->status)));
    bool gives_up = op->status != ST_OK || (!wrote && ++f->attempts == ATTEMPTS_MAX);
    if (gives_up)
        next_namespace(f);
    else
        /* If it was not written, the object exists now or the namespace has changed. */
        f->step = wrote ? LOOK : READ_NAMESPACE;
    f->object += wrote;
    engine_write_close(&job->write.engine);
    kube_job_next(job);
}

static void write_object(struct furnish *f)
{
    if (!make_value(f))
        xalloc_check(NULL, ARENA_BYTES_MAX);
    f->job.write = (struct kube_write){
        .key = object_key(f),
        .value = buf_slice(&f->value),
        .guard = key_of(f, "/registry/namespaces/", SLICE_EMPTY, current(f)),
        .guard_expected = f->namespace_revision,
    };
    kube_job_put(&f->job, on_written);
}

/* -- The job -- */

static void furnish_step(struct kube_job *job)
{
    struct furnish *f = furnish_of(job);
    if (f->object == COUNT_OF(objects))
        next_namespace(f);
    if (!f->names.len) {
        kube_job_end(job);
        return;
    }
    kube_job_reset_arena(job, ARENA_BYTES_MAX);
    switch (f->step) {
    case READ_LEASE:
        read_key(f, SLICE_LITERAL(KUBE_MANAGER_LEASE_KEY));
        break;
    case READ_NAMESPACE:
        read_key(f, key_of(f, "/registry/namespaces/", SLICE_EMPTY, current(f)));
        break;
    case LOOK:
        read_key(f, object_key(f));
        break;
    case WRITE:
        write_object(f);
        break;
    }
}

static const struct kube_job_type furnish_type = {.step = furnish_step, .fini = furnish_fini};

void kube_furnish_start(struct kube_api *api, struct slice namespace)
{
    struct kube_job *job = kube_jobs_find(api->jobs, &furnish_type, NULL);
    if (!api->config->furnishes || !api->config->start || engine_forwards(api->engine) ||
        api->jobs->stopped)
        return;
    struct furnish *f = job ? furnish_of(job) : xcalloc(1, sizeof(*f));
    if (buf_append(&f->names, namespace) != ST_OK ||
        buf_append(&f->names, slice_of("", 1)) != ST_OK)
        xalloc_check(NULL, namespace.len);
    if (!job)
        kube_job_start(&f->job, &furnish_type, api);
}
