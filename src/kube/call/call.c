#include "kube/call/call.h"

#include "base/clock.h"
#include "base/memory/budget.h"
#include "base/xalloc.h"
#include "kube/call/warning.h"
#include "kube/policy/access/identity.h"
#include "kube/policy/access/sign_in.h"

static void call_end(struct kube_life *life)
{
    struct kube_call *call = CONTAINER_OF(life, struct kube_call, life);
    if (call->on_end)
        call->on_end(call);
    kube_call_release(call);
}

struct kube_call *kube_call_new(struct kube_api *api, struct http_exchange *exchange,
                                const struct http_request *request)
{
    struct kube_call *call = xcalloc(1, sizeof(*call));
    call->life.end = call_end;
    call->api = api;
    call->exchange = exchange;
    call->request = request;
    call->started_ns = clock_mono_ns(api->clock);
    arena_init(&call->arena, NULL, 0, api->call_bytes_max);
    arena_charge(&call->arena, http_exchange_account(exchange));
    random_fill(&api->random, &call->random, sizeof(call->random));
    http_exchange_set_user(exchange, &call->life);
    return call;
}

static void call_free(struct kube_call *call)
{
    /* Requests that were refused before they named a resource are not counted. */
    if (call->code && call->path.resource.len) {
        bool writes = call->verb >= KUBE_VERB_POST && call->verb <= KUBE_VERB_DELETE_COLLECTION;
        if (writes && call->code / 100 == 2 && call->api->config->written)
            atomic_store_explicit(call->api->config->written, true, memory_order_relaxed);
        int64_t duration_ns = clock_mono_ns(call->api->clock) - call->started_ns;
        kube_count_request(&call->api->counter, call->verb, call->kind, call->code,
                           call->verb == KUBE_VERB_WATCH || duration_ns < 0 ? -1 : duration_ns);
    }
    kube_write_queue_leave(&call->ticket);
    kube_write_queue_leave(&call->quota_ticket);
    if (call->on_free)
        call->on_free(call);
    kube_call_use_set_aside(call);
    if (call->kinds)
        kube_kinds_unref(call->kinds);
    if (call->identity)
        kube_identity_free(call->identity);
    buf_fini(&call->work.answer.made);
    buf_fini(&call->warnings);
    arena_fini(&call->arena);
    free(call);
}

void kube_call_use_set_aside(struct kube_call *call)
{
    account_release(call->arena.account, call->set_aside);
    call->set_aside = 0;
}

void kube_call_hold(struct kube_call *call)
{
    call->under_way++;
    call->api->under_way++;
}

bool kube_call_done(struct kube_call *call)
{
    call->under_way--;
    call->api->under_way--;
    /* Without an exchange the client is gone, and the last operation under way frees the call. */
    if (call->exchange)
        return true;
    if (!call->under_way)
        call_free(call);
    return false;
}

void kube_call_hand_over(struct kube_call *call, struct kube_life *life)
{
    http_exchange_set_user(call->exchange, life);
}

void kube_call_release(struct kube_call *call)
{
    call->exchange = NULL;
    if (call->outside) {
        call->cancel(TAKE(call->outside)); /* which has held the call */
        call->under_way--;
        call->api->under_way--;
    }
    if (call->work.away) /* its step need not run */
        atomic_store_explicit(&call->work.job.worker.given_up, true, memory_order_relaxed);
    if (!call->under_way)
        call_free(call);
}

/* Without authorization a client without credentials may do everything. */
static void find_user(struct kube_call *call, struct kube_user_info *user)
{
    const struct kube_tokens *tokens = call->api->config->tokens;
    const struct kube_user *known = NULL;
    struct slice field;
    if (call->request->own && call->request->own_account) {
        kube_user_account(&call->arena, SLICE_LITERAL("kube-system"),
                          slice_from_text(call->request->own_account), user);
        kube_user_add_group(&call->arena, user, KUBE_GROUP_AUTHENTICATED);
        return;
    }
    if (kube_user_of_certificate(&call->arena, call->request, user))
        return;
    if (tokens && http_request_get(call->request, SLICE_LITERAL("authorization"), &field))
        known = kube_tokens_find(tokens, field);
    if (known) {
        kube_user_of_file(&call->arena, known, user);
        return;
    }
    *user = (struct kube_user_info){.name = SLICE_LITERAL("system:admin")};
    kube_user_add_group(&call->arena, user, KUBE_GROUP_MASTERS);
    kube_user_add_group(&call->arena, user, KUBE_GROUP_AUTHENTICATED);
}

const struct kube_user_info *kube_call_user(struct kube_call *call)
{
    static const struct kube_user_info none;
    if (call->identity) {
        call->user = kube_identity_user(call->identity);
    } else if (!call->user) {
        struct kube_user_info *user = arena_calloc(&call->arena, 1, sizeof(*user));
        if (!user)
            return &none; /* the arena remembers it */
        find_user(call, user);
        call->user = user;
    }
    return call->user;
}

void kube_call_warn(struct kube_call *call, struct slice warning)
{
    kube_warning_add(&call->warnings, warning);
}

bool kube_call_defers(struct kube_call *call, void (*next)(struct kube_call *call))
{
    if (!call->work.away)
        return false;
    assert(!call->work.next); /* a step ends in one thing */
    call->work.next = next;
    return true;
}

struct kube_kinds *kube_call_kinds(const struct kube_call *call)
{
    return call->work.away ? call->work.kinds : kube_registry_kinds(call->api->registry);
}
