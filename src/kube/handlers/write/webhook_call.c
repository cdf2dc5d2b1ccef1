/* The calls of admission webhooks for a write: what they are sent, the wait, and what is answered.
 */
#include "base/clock.h"
#include "base/log/log.h"
#include "kube/call/call_offload.h"
#include "kube/call/deadline.h"
#include "kube/call/metrics.h"
#include "kube/call/respond.h"
#include "kube/call/warning.h"
#include "kube/handlers/write/webhooks_private.h"
#include "kube/types/object/meta.h"

enum { BAD_REQUEST = 400, UNAVAILABLE = 503 }; /* codes that Kubernetes counts */
enum { LOGGED_BYTES_MAX = 256 };
enum { CALLS_BYTES_MAX = 96 << 20 };          /* memory for the calls of one write */
enum { KUBE_ANSWERS_BYTES_SHORT = 64 << 10 }; /* are read within about 1 ms */

/* -- One write, as webhooks see it -- */

static bool is_deletion(const struct kube_change *change)
{
    return change->decide && !change->posted;
}

bool kube_asking_is_idle(const struct kube_change *change)
{
    return is_deletion(change) && change->decision == KUBE_DECIDE_KEEP && !change->object;
}

bool kube_asking_begin(struct kube_asking *a, struct kube_change *change, bool mutates)
{
    *a = (struct kube_asking){
        .change = change, .hooks = change->policies->hooks, .mutates = mutates};
    if (!kube_policies_begin_write(change, NULL, 0, &a->write))
        return false;
    a->run = (struct kube_policy_run){.write = &a->write, .limit = {.left = a->write.cost_max}};
    if (mutates && !is_deletion(change)) {
        a->write.keeps_version = true;
        return kube_policies_see_mutable(change, &a->write);
    }
    if (change->posted)
        a->write.object_kind = *change->posted_kind;
    return kube_policies_see(change, &a->write);
}

void kube_asking_charge(struct kube_asking *a)
{
    struct kube_policy_facts *f = a->change->policies;
    f->spent += a->write.cost_max - a->run.limit.left;
    if (f->spent > KUBE_WRITE_COST_MAX)
        f->spent = KUBE_WRITE_COST_MAX;
}

enum kube_stepped kube_asking_undecided(struct kube_asking *a, enum kube_webhook_concern concern)
{
    if (concern == KUBE_WEBHOOK_TOO_DEAR)
        return KUBE_STEP_LONG;
    if (concern == KUBE_WEBHOOK_DENIES)
        return KUBE_STEP_FAIL;
    a->write.cost = a->write.cost_max - a->run.limit.left;
    return kube_policies_go_to_ask(a->change, &a->write);
}

/* -- Metrics -- */

static void count_conditions(const struct kube_asking *a, const struct kube_webhook *webhook,
                             const struct kube_webhook_conditions *conditions)
{
    if (!conditions->were_evaluated)
        return;
    kube_webhook_metrics_conditions(
        kube_counter_webhooks(&a->change->call->api->counter),
        &(struct kube_conditions_count){
            .name = webhook->rule.name,
            .is_mutating = a->mutates,
            .operation = kube_policy_operation(a->write.request.operation),
            .errors = conditions->errors,
            .is_excluded = conditions->are_false,
            .elapsed_ns = conditions->elapsed_ns,
        });
}

void kube_hook_count(const struct kube_asking *a, const struct kube_webhook *webhook,
                     enum kube_webhook_outcome outcome, unsigned code, int64_t took_ns)
{
    kube_webhook_metrics_call(kube_counter_webhooks(&a->change->call->api->counter),
                              &(struct kube_webhook_count){
                                  .name = webhook->rule.name,
                                  .is_mutating = a->mutates,
                                  .operation = kube_policy_operation(a->write.request.operation),
                                  .outcome = outcome,
                                  .code = code,
                                  .elapsed_ns = took_ns,
                              });
}

enum kube_webhook_concern kube_hook_concerns(struct kube_asking *a,
                                             const struct kube_webhook *webhook,
                                             const struct kube_kind **ret_kind)
{
    struct kube_webhook_conditions conditions;
    enum kube_webhook_concern concern =
        kube_webhook_concerns(&a->run, webhook, ret_kind, &conditions);
    count_conditions(a, webhook, &conditions);
    return concern;
}

/* Operators look in the log for what webhooks do; one line a second and thread is enough. */
static bool may_log(struct kube_api *api)
{
    int64_t now = clock_mono_ns(api->clock);
    int64_t last = atomic_load_explicit(&api->webhook_logged_ns, memory_order_relaxed);
    if (last && now - last < NS_PER_S)
        return false;
    atomic_store_explicit(&api->webhook_logged_ns, now, memory_order_relaxed);
    return true;
}

static void log_failure(struct kube_api *api, const struct kube_webhook *webhook, struct slice why)
{
    if (!may_log(api))
        return;
    log_warn(webhook->rule.ignores_failures
                 ? "an admission webhook has failed, and its failurePolicy lets writes pass"
                 : "an admission webhook has failed, and its failurePolicy refuses writes",
             LOG_SLICE("webhook", webhook->rule.name),
             LOG_SLICE("why", slice_sub(why, 0, size_min(why.len, LOGGED_BYTES_MAX))));
}

/* Once for each webhook, until its configuration changes. */
static void log_annotations(struct kube_api *api, const struct kube_webhook *webhook)
{
    if (atomic_load_explicit(webhook->is_logged, memory_order_relaxed) || !may_log(api) ||
        atomic_exchange_explicit(webhook->is_logged, true, memory_order_relaxed))
        return;
    log_warn("an admission webhook has answered with auditAnnotations, which are dropped: this "
             "server has no audit log",
             LOG_SLICE("webhook", webhook->rule.name));
}

/* The webhook has no verdict. False: that refuses the write. */
static bool fail_call(struct kube_asking *a, const struct kube_webhook *webhook, struct slice why,
                      unsigned code, int64_t took_ns)
{
    kube_hook_count(a, webhook,
                    webhook->rule.ignores_failures ? KUBE_WEBHOOK_FAILED_OPEN : KUBE_WEBHOOK_FAILED,
                    code, took_ns);
    log_failure(a->change->call->api, webhook, why);
    if (!webhook->rule.ignores_failures)
        return kube_policy_fail_internal(
            &a->run, "",
            kube_policy_format(&a->run, "failed calling webhook \"%.*s\": %.*s",
                               SLICE_ARGS(webhook->rule.name), SLICE_ARGS(why)));
    return kube_call_time_left_ns(a->change->call) ||
           kube_call_fail_late(a->change->call, a->write.status);
}

/* -- Calls -- */

void kube_hooks_end_calls(struct kube_hooks *hooks)
{
    for (size_t i = 0; i < hooks->call_count; i++) {
        kube_webhook_call_cancel(&hooks->calls[i].call);
        kube_webhook_call_fini(&hooks->calls[i].call);
    }
    hooks->call_count = hooks->review_bytes = 0;
    hooks->calls = NULL;
    arena_fini(&hooks->arena);
    hooks->arena = (struct arena){0};
}

static void on_done(struct kube_webhook_call *call)
{
    struct kube_hook_call *c = call->owner;
    struct kube_hooks *hooks = c->hooks;
    struct kube_change *change = hooks->change;
    c->arrival = ++hooks->arrived;
    c->took_ns = clock_mono_ns(change->call->api->clock) - c->began_ns;
    if (--hooks->waiting)
        return;
    change->call->on_end = hooks->on_end;
    http_need_peer(change->call->exchange, false);
    if (kube_call_done(change->call))
        kube_change_next(change);
}

/* The client has disconnected: its answers are not needed. */
static void on_client_gone(struct kube_call *call)
{
    struct kube_hooks *hooks = call->handler.change->policies->hooks;
    call->on_end = hooks->on_end;
    for (size_t i = 0; i < hooks->call_count; i++)
        kube_webhook_call_cancel(&hooks->calls[i].call);
    (void)!kube_call_done(call); /* it is freed when this has returned */
    if (call->on_end)
        call->on_end(call);
}

bool kube_hooks_make_room(struct kube_hooks *hooks, size_t count)
{
    arena_init(&hooks->arena, NULL, 0, CALLS_BYTES_MAX);
    arena_charge(&hooks->arena, hooks->change->call->arena.account);
    hooks->calls = arena_calloc(&hooks->arena, count, sizeof(*hooks->calls));
    return hooks->calls;
}

static bool make_call(struct kube_asking *a, struct kube_hook *hook, const struct kube_kind *kind,
                      int64_t timeout_ns)
{
    struct kube_hooks *hooks = a->hooks;
    struct kube_call *call = a->change->call;
    const struct kube_webhook *webhook = hook->webhook;
    struct kube_hook_call *to = &hooks->calls[hooks->call_count];
    AUTO(buf_fini) struct buf body = {0};
    char uid[KUBE_UID_BYTES];
    struct slice text;
    kube_uid_make(&call->random, uid);
    *to = (struct kube_hook_call){.hooks = hooks, .hook = hook, .kind = kind};
    if (arena_dup(&hooks->arena, slice_from_text(uid), &to->uid) != ST_OK ||
        kube_webhook_ask(&a->run, webhook, kind, to->uid, &body) != ST_OK ||
        arena_dup(&hooks->arena, buf_slice(&body), &text) != ST_OK)
        return kube_fail_engine(a->write.status, ST_NOMEM);
    to->call = (struct kube_webhook_call){
        .target = webhook->target,
        .use = a->mutates ? KUBE_WEBHOOK_MUTATES : KUBE_WEBHOOK_VALIDATES,
        .body = text,
        .timeout_ns = timeout_ns,
        .agent = SLICE_LITERAL("kube-apiserver-admission"),
        .account = call->arena.account,
        .done = on_done,
        .owner = to,
    };
    hooks->call_count++;
    hooks->review_bytes += text.len;
    return true;
}

bool kube_hook_prepare(struct kube_asking *a, struct kube_hook *hook, const struct kube_kind *kind)
{
    const struct kube_webhook *webhook = hook->webhook;
    int64_t left = kube_call_time_left_ns(a->change->call), most = webhook->timeout_s * NS_PER_S;
    if (a->change->dry_run && !webhook->takes_dry_runs) {
        kube_hook_count(a, webhook, KUBE_WEBHOOK_BROKEN, 0, 0);
        return kube_fail(a->write.status, KUBE_BAD_REQUEST,
                         "admission webhook \"%.*s\" does not support dry run",
                         SLICE_ARGS(webhook->rule.name));
    }
    if (webhook->rule.unusable)
        return fail_call(
            a, webhook,
            kube_policy_format(&a->run, "this server cannot use it: %s", webhook->rule.unusable),
            BAD_REQUEST, 0);
    if (!webhook->takes_v1 && !webhook->takes_v1beta1)
        return fail_call(a, webhook,
                         SLICE_LITERAL("could not create admission objects: webhook does not "
                                       "accept known AdmissionReview versions (v1, v1beta1)"),
                         BAD_REQUEST, 0);
    if (!left)
        return kube_call_fail_late(a->change->call, a->write.status);
    return make_call(a, hook, kind, left < most ? left : most);
}

enum kube_stepped kube_webhooks_call(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct kube_hooks *hooks = change->policies->hooks;
    if (!hooks || !hooks->call_count)
        return KUBE_STEP_NEXT;
    kube_write_queue_leave(&call->ticket);
    kube_write_queue_leave(&call->quota_ticket);
    hooks->waiting = hooks->call_count;
    hooks->arrived = 0;
    hooks->on_end = call->on_end;
    call->on_end = on_client_gone;
    http_need_peer(call->exchange, true);
    kube_call_hold(call);
    for (size_t i = 0; i < hooks->call_count; i++) {
        hooks->calls[i].began_ns = clock_mono_ns(call->api->clock);
        kube_webhook_call_start(call->api->webhooks, &hooks->calls[i].call);
    }
    return KUBE_STEP_LEFT;
}

/* -- Answers -- */

bool kube_hooks_are_long(const struct kube_hooks *hooks)
{
    size_t bytes = 0;
    for (size_t i = 0; i < hooks->call_count; i++)
        bytes += hooks->calls[i].call.answer.len;
    return bytes > KUBE_ANSWERS_BYTES_SHORT && kube_call_can_leave(hooks->change->call);
}

/* Without memory a warning is dropped. */
static void warn(struct kube_asking *a, const struct kube_webhook_verdict *verdict)
{
    for (size_t i = 0; i < verdict->warning_count; i++) {
        kube_call_warn(a->change->call, verdict->warnings[i]);
        kube_warning_add(&a->hooks->kept.warnings, verdict->warnings[i]);
    }
}

void kube_hooks_warn_again(struct kube_asking *a)
{
    struct slice rest = buf_slice(&a->hooks->kept.warnings);
    while (rest.len)
        kube_call_warn(a->change->call, slice_cut(&rest, '\0'));
}

bool kube_hook_judge(struct kube_asking *a, struct kube_hook_call *c,
                     struct kube_webhook_verdict *verdict, bool *ret_decides)
{
    const struct kube_webhook *webhook = c->hook->webhook;
    struct kube_status *to = a->write.status;
    AUTO(buf_fini) struct buf why = {0};
    enum status status = c->call.status;
    *ret_decides = false;
    if (status == ST_OK) {
        status =
            kube_webhook_verdict_read(&a->hooks->arena, buf_slice(&c->call.answer),
                                      webhook->takes_v1beta1 ? KUBE_REVIEW_V1BETA1 : KUBE_REVIEW_V1,
                                      c->uid, a->mutates, verdict, &why);
        if (status == ST_OK) {
            warn(a, verdict);
            if (verdict->has_annotations)
                log_annotations(a->change->call->api, webhook);
            *ret_decides = verdict->allowed;
            if (verdict->allowed)
                return true;
            (void)kube_webhook_refuse(&a->hooks->arena, webhook->rule.name, verdict, to);
            kube_hook_count(a, webhook, KUBE_WEBHOOK_DENIED, kube_status_code(to), c->took_ns);
            return false;
        }
    } else if (status == ST_REQUEST_TOO_MANY_REQUESTS) {
        return kube_fail_later(to, SLICE_LITERAL("too many requests wait for admission webhooks, "
                                                 "please try again"));
    } else if (buf_append_text(&why, "failed to call webhook: ") != ST_OK ||
               buf_append(&why, buf_slice(&c->call.error)) != ST_OK) {
        status = ST_NOMEM;
    }
    if (status == ST_NOMEM || status == ST_STOPPED)
        return kube_fail_engine(to, status);
    return fail_call(a, webhook, buf_slice(&why),
                     c->call.code >= BAD_REQUEST ? c->call.code : UNAVAILABLE, c->took_ns);
}
