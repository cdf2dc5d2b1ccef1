#include "kube/jobs/follower/own_request.h"

static int64_t now_ns(void *ctx)
{
    return loop_now_ns(((struct kube_own_request *)ctx)->job->api->loop);
}

static void on_answered(struct deferred *deferred)
{
    struct kube_own_request *request = CONTAINER_OF(deferred, struct kube_own_request, answered);
    struct http_local *local = request->local;
    request->local = NULL;
    request->done(request, local);
    /* The job may be gone, and the request with it. */
    http_local_close(local);
}

/* Called from within the handler, in which the request cannot be closed. */
static void on_answer(void *ctx)
{
    struct kube_own_request *request = ctx;
    loop_defer(request->job->api->loop, &request->answered);
}

enum status kube_own_request_send(struct kube_own_request *request,
                                  const struct http_local_request *what)
{
    struct http_local_owner owner = {.on_answer = on_answer, .now_ns = now_ns, .ctx = request};
    struct http_local_request as = *what;
    as.account = request->account;
    request->answered.fn = on_answered;
    kube_job_run(request->job);
    return http_local_send(request->route, request->job->api, &as, &owner, &request->local);
}
