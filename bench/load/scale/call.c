#include "load/scale/call.h"

#include "base/xalloc.h"
#include "load/usage.h"

struct scale_call {
    struct scale_thread *thread;
    scale_done *done;
    void *owner;
    uint64_t start_ns;
    enum scale_measure measure;
    int expected;
};

static int code_of(const vigil_kube_call *call)
{
    if (vigil_kube_call_error(call)->code == VIGIL_OK)
        return 0;
    int code = vigil_kube_call_status(call)->code;
    return code ? code : SCALE_CALL_FAILED;
}

static void on_done(vigil_kube_call *call, void *user)
{
    struct scale_call *c = user;
    struct scale_measures *measures = c->thread->measures;
    const vigil_error *error = vigil_kube_call_error(call);
    int code = code_of(call);
    if (code == 0 || code == c->expected)
        scale_measures_add(measures, c->measure, bench_now_ns() - c->start_ns);
    else if (error->code != VIGIL_ERROR_CANCELED)
        scale_measures_error(measures, scale_measure_name(c->measure), error->text);
    c->done(c->owner, call, code);
    atomic_fetch_sub(&c->thread->world->calls, 1);
    vigil_kube_call_free(call);
    free(c);
}

void scale_call_start(struct scale_thread *thread, enum scale_measure measure,
                      vigil_kube_call *call, int expected, scale_done *done, void *owner)
{
    struct scale_call *c = xmalloc(sizeof(*c));
    *c = (struct scale_call){thread, done, owner, bench_now_ns(), measure, expected};
    vigil_kube_call_want_protobuf(call);
    atomic_fetch_add(&thread->world->calls, 1);
    int code = vigil_kube_call_start(call, on_done, c);
    if (code == VIGIL_OK)
        return;
    atomic_fetch_sub(&thread->world->calls, 1);
    /* Its owner is being stopped, or there is no memory. */
    if (code != VIGIL_ERROR_CANCELED)
        scale_measures_error(thread->measures, scale_measure_name(measure), "it was not started");
    vigil_kube_call_free(call);
    free(c);
}

void scale_call_version(const vigil_kube_call *call, char *version, size_t size)
{
    const vigil_kube_object *object = vigil_kube_call_object(call);
    if (!object)
        return;
    vigil_bytes found = vigil_kube_object_version(object);
    snprintf(version, size, "%.*s", (int)found.size, (const char *)found.data);
}
