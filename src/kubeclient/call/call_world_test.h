/* For tests of calls: calls of a simulated client, and what became of them. One file of a program
 * includes this. */
#ifndef VIGIL_KUBECLIENT_CALL_CALL_WORLD_TEST_H
#define VIGIL_KUBECLIENT_CALL_CALL_WORLD_TEST_H

#include "kubeclient/call/call.h"
#include "kubeclient/call/kube_server_sim_test.h"

struct call_result {
    vigil_kube_call *call;
    unsigned completions;
    int code, outcome;
    int64_t at_ns;
    bool frees; /* the call, in its callback */
    struct kube_world *world;
};

/* The calls that are under way. */
static inline void call_world_check(struct kube_world *w)
{
    struct driver_member *member;
    LIST_FOREACH (member, &w->kube->driver.members, in_driver)
        kube_call_check(CONTAINER_OF(member, struct vigil_kube_call, operation.member));
    if (w->kube->limiter)
        rate_limiter_check(w->kube->limiter);
}

static inline void call_on_done(vigil_kube_call *call, void *user)
{
    struct call_result *r = user;
    const vigil_error *error = vigil_kube_call_error(call);
    assert_ptr_equal(r->call, call);
    assert_ptr_equal(vigil_kube_call_user(call), user);
    r->completions++;
    r->code = error->code;
    r->outcome = error->outcome;
    r->at_ns = kube_world_now(r->world);
    assert_true((error->code == VIGIL_OK) == (error->text[0] == 0));
    if (r->frees) {
        vigil_kube_call_free(call);
        r->call = NULL;
    }
}

static inline void call_start(struct kube_world *w, struct call_result *r, vigil_kube_call *call)
{
    *r = (struct call_result){.call = call, .world = w, .frees = r->frees};
    int code = vigil_kube_call_start(call, call_on_done, r);
    if (code == VIGIL_OK)
        return;
    assert_int_equal(code, VIGIL_ERROR_MEMORY);
    *r = (struct call_result){
        .completions = 1, .code = VIGIL_ERROR_MEMORY, .outcome = VIGIL_NOT_SENT};
}

/* Runs until it has completed, and frees it at the end of the test. */
static inline void call_run(struct kube_world *w, struct call_result *r, vigil_kube_call *call)
{
    call_start(w, r, call);
    assert_true(r->completions == 0 || !call);
    KUBE_WORLD_RUN_UNTIL(w, r->completions);
    assert_int_equal(r->completions, 1);
}

static inline void call_end(struct call_result *r)
{
    vigil_kube_call_free(r->call);
    r->call = NULL;
}

static const vigil_kube_target call_pods = {
    .version = "v1", .resource = "pods", .name_space = "default"};
static const vigil_kube_target call_pod = {
    .version = "v1", .resource = "pods", .name_space = "default", .name = "web"};

#define CALL_POD                                                              \
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web\"," \
    "\"namespace\":\"default\",\"resourceVersion\":\"7\"}}"

static inline void call_answer_pod(struct sim_reply *reply, const struct sim_request *request,
                                   void *ctx)
{
    (void)request, (void)ctx;
    sim_reply_json(reply, 200, CALL_POD);
}

/* A world in which every request is answered by this function. */
static inline void call_world_init(struct kube_world *w, enum sim_protocol protocol,
                                   sim_answer *answer, void *ctx)
{
    kube_world_init(w, protocol, NULL);
    w->check = call_world_check;
    kube_server_route(&w->server, NULL, "*", answer, ctx);
}

static inline void call_world_start(struct kube_world *w, enum sim_protocol protocol,
                                    sim_answer *answer, void *ctx)
{
    call_world_init(w, protocol, answer, ctx);
    if (!kube_world_start(w))
        fail_msg("%s", w->error.text);
}

#endif
