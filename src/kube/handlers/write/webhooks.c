#include "kube/handlers/write/webhooks.h"

#include "base/clock.h"
#include "kube/call/metrics.h"
#include "kube/call/respond.h"
#include "kube/call/webhook_metrics.h"
#include "kube/handlers/write/policies_private.h"
#include "kube/policy/webhooks/concern.h"
#include "kube/types/object/meta.h"
#include "kube/webhook/caller.h"

#include <stdio.h>
#include <stdlib.h>

enum { OK_CODE = 200, BAD_REQUEST = 400, UNAVAILABLE = 503 }; /* codes that Kubernetes counts */
enum { CALLS_BYTES_MAX = 96 << 20 }; /* memory for the calls of one write */

/* A webhook that may concern the write. */
struct hook {
    const struct kube_lookup_object *configuration; /* held */
    const struct kube_webhook *webhook;
    const struct kube_kind *kind; /* validating: as which it sees the object; NULL: it does not */
    /* Mutating: it was called and says IfNeeded; the object has changed since, so that it is called
     * in the second pass. */
    bool was_called, is_repeated;
};

struct hook_call {
    struct kube_hooks *hooks;
    struct hook *hook;
    const struct kube_kind *kind;
    struct slice uid;
    struct kube_webhook_call call;
    size_t arrival; /* 1: was the first to arrive */
    int64_t began_ns, took_ns;
};

/* In the arena of the call. */
struct kube_hooks {
    struct kube_change *change;
    struct hook *items; /* those that validate, and behind them those that mutate */
    size_t count, capacity, validating;
    size_t at;                      /* mutating: the next one, counted from `validating` */
    const struct json_node *output; /* the object after the first pass; NULL: not needed */
    bool called;                    /* mutating: some were called */
    bool chosen;                    /* validating: it is known which of them concern the write, */
    size_t next;                    /* and this is the next one to be called */

    struct hook_call *calls;
    size_t call_count, waiting, arrived;
    struct arena arena;                     /* memory of the calls */
    void (*on_end)(struct kube_call *call); /* that the call had before */

    /* Verdicts that hold for other attempts with the same stored object and name. */
    struct hooks_kept {
        int64_t revision;
        unsigned renamed;
        bool is_mutated, is_checked;
        struct buf mutated;  /* the object as mutating admission has left it; empty: unchanged */
        struct buf warnings; /* of all webhooks, each terminated by NUL */
    } kept;
};

/* -- Gathering -- */

static bool add_hook(void *ctx, const struct kube_lookup_object *configuration,
                     const struct kube_webhook *webhook)
{
    struct kube_policy_facts *f = ctx;
    struct kube_hooks *hooks = f->hooks;
    f->too_many = hooks->count == KUBE_POLICY_CASES_MAX;
    if (f->too_many)
        return false;
    if (hooks->count == hooks->capacity) {
        size_t capacity = size_max(4, 2 * hooks->capacity);
        struct hook *more = arena_calloc(&f->arena, capacity, sizeof(*more));
        if (!more)
            return false;
        if (hooks->count)
            memcpy(more, hooks->items, hooks->count * sizeof(*more));
        hooks->items = more;
        hooks->capacity = capacity;
    }
    kube_lookup_hold(configuration);
    hooks->items[hooks->count++] =
        (struct hook){.configuration = configuration, .webhook = webhook};
    return true;
}

/* By the name of the configuration, and in its order. */
static int compare_hooks(const void *a, const void *b)
{
    const struct hook *x = a, *y = b;
    int order = slice_compare(x->configuration->name, y->configuration->name);
    if (order)
        return order;
    return (x->webhook > y->webhook) - (x->webhook < y->webhook);
}

static void sort(struct hook *items, size_t count)
{
    if (count)
        qsort(items, count, sizeof(*items), compare_hooks);
}

static void forget(struct kube_hooks *hooks)
{
    struct hooks_kept *kept = &hooks->kept;
    kept->revision = hooks->change->revision;
    kept->renamed = hooks->change->renamed;
    kept->is_mutated = kept->is_checked = false;
    buf_reset(&kept->mutated, SIZE_MAX);
    buf_reset(&kept->warnings, SIZE_MAX);
}

bool kube_webhooks_find(struct kube_policy_facts *f, const struct kube_shelf *validating,
                        const struct kube_shelf *mutating)
{
    if (!validating && !mutating)
        return true;
    if (!f->hooks)
        f->hooks = arena_calloc(&f->change->call->arena, 1, sizeof(*f->hooks));
    struct kube_hooks *hooks = f->hooks;
    if (!hooks)
        return false;
    hooks->change = f->change;
    if (hooks->kept.revision != f->change->revision || hooks->kept.renamed != f->change->renamed)
        forget(hooks);
    if (validating && !kube_webhooks_each(validating, &f->request, add_hook, f))
        return false;
    hooks->validating = hooks->count;
    if (mutating && !kube_webhooks_each(mutating, &f->request, add_hook, f))
        return false;
    sort(hooks->items, hooks->validating);
    sort(hooks->items + hooks->validating, hooks->count - hooks->validating);
    return true;
}

bool kube_webhooks_found(const struct kube_policy_facts *f)
{
    return f->hooks && f->hooks->count;
}

bool kube_webhooks_mutate(const struct kube_policy_facts *f)
{
    return f->hooks && f->hooks->count > f->hooks->validating;
}

void kube_webhooks_forget(struct kube_hooks *hooks)
{
    if (hooks)
        forget(hooks);
}

static void end_calls(struct kube_hooks *hooks)
{
    for (size_t i = 0; i < hooks->call_count; i++) {
        kube_webhook_call_cancel(&hooks->calls[i].call);
        kube_webhook_call_fini(&hooks->calls[i].call);
    }
    hooks->call_count = 0;
    hooks->calls = NULL;
    arena_fini(&hooks->arena);
    hooks->arena = (struct arena){0};
}

void kube_webhooks_release(struct kube_hooks *hooks)
{
    if (!hooks)
        return;
    end_calls(hooks);
    for (size_t i = 0; i < hooks->count; i++)
        kube_lookup_release(hooks->items[i].configuration);
    *hooks = (struct kube_hooks){.change = hooks->change, .kept = hooks->kept};
}

void kube_webhooks_free(struct kube_hooks *hooks)
{
    if (!hooks)
        return;
    kube_webhooks_release(hooks);
    buf_fini(&hooks->kept.mutated);
    buf_fini(&hooks->kept.warnings);
    hooks->kept = (struct hooks_kept){.revision = -1};
}

/* -- Time -- */

/* What the request has left of its time; 0: nothing. */
static int64_t time_left_ns(const struct kube_call *call)
{
    int64_t most = KUBE_REQUEST_TIMEOUT_S * NS_PER_S;
    int64_t asked = call->query.request_timeout_ns;
    int64_t spent = clock_mono_ns(call->api->clock) - call->started_ns;
    int64_t left = (asked > 0 && asked < most ? asked : most) - spent;
    return left > 0 ? left : 0;
}

static bool fail_late(struct kube_status *status)
{
    return kube_fail(status, KUBE_TIMEOUT,
                     "Timeout: request did not complete within requested "
                     "timeout - context deadline exceeded");
}

/* -- One write, as webhooks see it -- */

struct asking {
    struct kube_change *change;
    struct kube_hooks *hooks;
    struct kube_policy_write write;
    struct kube_policy_run run;
    bool mutates;
};

static bool is_deletion(const struct kube_change *change)
{
    return change->decide && !change->posted;
}

/* Nothing is deleted: the object was not selected, or is being deleted already. */
static bool is_idle(const struct kube_change *change)
{
    return is_deletion(change) && change->decision == KUBE_DECIDE_KEEP;
}

static bool begin(struct asking *a, struct kube_change *change, bool mutates)
{
    *a = (struct asking){.change = change, .hooks = change->policies->hooks, .mutates = mutates};
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

/* What conditions have cost counts for all of the write. */
static void charge(struct asking *a)
{
    struct kube_policy_facts *f = a->change->policies;
    f->spent += a->write.cost_max - a->run.limit.left;
    if (f->spent > KUBE_WRITE_COST_MAX)
        f->spent = KUBE_WRITE_COST_MAX;
}

/* There is no verdict about whether a webhook is called. */
static enum kube_stepped undecided(struct asking *a, enum kube_webhook_concern concern)
{
    if (concern == KUBE_WEBHOOK_TOO_DEAR)
        return KUBE_STEP_LONG;
    if (concern == KUBE_WEBHOOK_DENIES)
        return KUBE_STEP_FAIL;
    a->write.cost = a->write.cost_max - a->run.limit.left;
    return kube_policies_go_to_ask(a->change, &a->write);
}

/* -- Metrics -- */

static void count_conditions(const struct asking *a, const struct kube_webhook *webhook,
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

static void count_call(const struct asking *a, const struct kube_webhook *webhook,
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

static enum kube_webhook_concern concerns(struct asking *a, const struct kube_webhook *webhook,
                                          const struct kube_kind **ret_kind)
{
    struct kube_webhook_conditions conditions;
    enum kube_webhook_concern concern =
        kube_webhook_concerns(&a->run, webhook, ret_kind, &conditions);
    count_conditions(a, webhook, &conditions);
    return concern;
}

/* The webhook has no verdict. False: that refuses the write. */
static bool fail_call(struct asking *a, const struct kube_webhook *webhook, struct slice why,
                      unsigned code, int64_t took_ns)
{
    count_call(a, webhook,
               webhook->rule.ignores_failures ? KUBE_WEBHOOK_FAILED_OPEN : KUBE_WEBHOOK_FAILED,
               code, took_ns);
    if (!webhook->rule.ignores_failures)
        return kube_policy_fail_internal(
            &a->run, "",
            kube_policy_format(&a->run, "failed calling webhook \"%.*s\": %.*s",
                               SLICE_ARGS(webhook->rule.name), SLICE_ARGS(why)));
    return time_left_ns(a->change->call) || fail_late(a->write.status);
}

/* -- Calls -- */

static void on_done(struct kube_webhook_call *call)
{
    struct hook_call *c = call->owner;
    struct kube_hooks *hooks = c->hooks;
    struct kube_change *change = hooks->change;
    c->arrival = ++hooks->arrived;
    c->took_ns = clock_mono_ns(change->call->api->clock) - c->began_ns;
    if (--hooks->waiting)
        return;
    change->call->on_end = hooks->on_end;
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

/* Room for calls, whose memory is charged to the client. */
static bool make_room(struct kube_hooks *hooks, size_t count)
{
    arena_init(&hooks->arena, NULL, 0, CALLS_BYTES_MAX);
    arena_charge(&hooks->arena, hooks->change->call->arena.account);
    hooks->calls = arena_calloc(&hooks->arena, count, sizeof(*hooks->calls));
    return hooks->calls;
}

static bool make_call(struct asking *a, struct hook *hook, const struct kube_kind *kind,
                      int64_t timeout_ns)
{
    struct kube_hooks *hooks = a->hooks;
    struct kube_call *call = a->change->call;
    const struct kube_webhook *webhook = hook->webhook;
    struct hook_call *to = &hooks->calls[hooks->call_count];
    AUTO(buf_fini) struct buf body = {0};
    char uid[KUBE_UID_BYTES];
    struct slice text;
    kube_uid_make(&call->random, uid);
    *to = (struct hook_call){.hooks = hooks, .hook = hook, .kind = kind};
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
    return true;
}

/* Adds a call of the webhook, unless it cannot be called and failures of it are ignored. False: the
 * write is refused. */
static bool prepare(struct asking *a, struct hook *hook, const struct kube_kind *kind)
{
    const struct kube_webhook *webhook = hook->webhook;
    int64_t left = time_left_ns(a->change->call), most = webhook->timeout_s * NS_PER_S;
    if (a->change->dry_run && !webhook->takes_dry_runs) {
        count_call(a, webhook, KUBE_WEBHOOK_BROKEN, 0, 0);
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
        return fail_late(a->write.status);
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
    kube_call_hold(call);
    for (size_t i = 0; i < hooks->call_count; i++) {
        hooks->calls[i].began_ns = clock_mono_ns(call->api->clock);
        kube_webhook_call_start(call->api->webhooks, &hooks->calls[i].call);
    }
    return KUBE_STEP_LEFT;
}

/* Back to the step before the one that chooses. */
static enum kube_stepped choose_more(struct kube_change *change)
{
    change->step = kube_step_before(kube_step_before(kube_step_before(change->step)));
    return KUBE_STEP_JUMP;
}

/* -- Answers -- */

/* Without memory a warning is dropped. */
static void warn(struct asking *a, const struct kube_webhook_verdict *verdict)
{
    for (size_t i = 0; i < verdict->warning_count; i++) {
        struct slice warning = verdict->warnings[i];
        kube_call_warn(a->change->call, warning);
        if (!warning.len || memchr(warning.ptr, '\0', warning.len))
            continue;
        if (buf_append(&a->hooks->kept.warnings, warning) == ST_OK)
            (void)!buf_append(&a->hooks->kept.warnings, slice_of("", 1));
    }
}

static void warn_again(struct asking *a)
{
    struct slice rest = buf_slice(&a->hooks->kept.warnings);
    while (rest.len)
        kube_call_warn(a->change->call, slice_cut(&rest, '\0'));
}

/* False: the write is refused. *ret_decides: there is a verdict, which allows it. */
static bool judge(struct asking *a, struct hook_call *c, struct kube_webhook_verdict *verdict,
                  bool *ret_decides)
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
            *ret_decides = verdict->allowed;
            if (verdict->allowed)
                return true;
            (void)kube_webhook_refuse(&a->hooks->arena, webhook->rule.name, verdict, to);
            count_call(a, webhook, KUBE_WEBHOOK_DENIED, kube_status_code(to), c->took_ns);
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

/* -- Mutating -- */

/* The object has changed: what was called before is called in the second pass. */
static void require_repeats(struct kube_hooks *hooks)
{
    for (size_t i = hooks->validating; i < hooks->count; i++) {
        hooks->items[i].is_repeated |= hooks->items[i].was_called;
        hooks->items[i].was_called = false;
    }
}

static const struct json_node *object_of(const struct kube_change *change)
{
    return change->posted ? change->posted : change->object;
}

/* The step is over with this webhook. */
static void pass_on(struct kube_hooks *hooks)
{
    struct hook *hook = &hooks->items[hooks->validating + hooks->at++];
    hooks->called = true;
    hook->was_called |= hook->webhook->rule.reinvoked;
}

/* An attempt with the same stored object has been here. */
static bool take_kept(struct asking *a)
{
    struct kube_hooks *hooks = a->hooks;
    struct kube_change *change = a->change;
    struct slice text = buf_slice(&hooks->kept.mutated), copy;
    struct json_node *object;
    struct error ignored;
    hooks->at = hooks->count - hooks->validating;
    change->mutating->again = true;
    warn_again(a);
    if (!text.len)
        return true;
    if (arena_dup(change->arena, text, &copy) != ST_OK ||
        json_tree_read(change->arena, copy, &object, &ignored) != ST_OK)
        return kube_fail_engine(a->write.status, ST_NOMEM);
    return kube_policies_take(change, object);
}

static bool take_mutated(struct kube_change *change, const struct json_node *object)
{
    change->mutating->mutated = true;
    require_repeats(change->policies->hooks);
    return kube_policies_take(change, object);
}

static bool take_converted(struct kube_change *change)
{
    struct kube_policy_facts *f = change->policies;
    struct json_node *object;
    struct slice copy;
    struct error ignored;
    struct slice json = f->taken;
    f->taken = SLICE_EMPTY;
    if (arena_dup(change->mutating->arena, json, &copy) != ST_OK ||
        json_tree_read(change->mutating->arena, copy, &object, &ignored) != ST_OK)
        return kube_fail_engine(&change->call->status, ST_NOMEM);
    return take_mutated(change, object);
}

enum kube_stepped kube_webhooks_choose(struct kube_change *change)
{
    const struct kube_kind *kind;
    struct kube_hooks *hooks = change->policies->hooks;
    struct asking a;
    if (!kube_webhooks_mutate(change->policies) || is_idle(change))
        return KUBE_STEP_NEXT;
    if (change->policies->taken.len && !take_converted(change))
        return KUBE_STEP_FAIL;
    if (!begin(&a, change, true))
        return KUBE_STEP_FAIL;
    if (!hooks->at && !change->mutating->again && hooks->kept.is_mutated)
        return take_kept(&a);
    if (hooks->output && !json_node_equal(hooks->output, object_of(change)))
        require_repeats(hooks);
    hooks->output = NULL;
    while (hooks->at < hooks->count - hooks->validating) {
        struct hook *hook = &hooks->items[hooks->validating + hooks->at];
        enum kube_webhook_concern concern = concerns(&a, hook->webhook, &kind);
        if (concern > KUBE_WEBHOOK_CONCERNS)
            return undecided(&a, concern);
        if (concern == KUBE_WEBHOOK_PASSES || (change->mutating->again && !hook->is_repeated)) {
            hooks->at++;
            continue;
        }
        if (!make_room(hooks, 1))
            return kube_fail_engine(a.write.status, ST_NOMEM);
        if (!prepare(&a, hook, kind))
            return KUBE_STEP_FAIL;
        if (hooks->call_count)
            break;
        end_calls(hooks);
        pass_on(hooks);
    }
    charge(&a);
    if (!hooks->call_count)
        kube_policies_forget_sights(change->policies);
    return KUBE_STEP_NEXT;
}

/* An object in another version is converted back first, by the step before choose. */
static bool take_patch(struct asking *a, struct hook_call *c,
                       const struct kube_webhook_verdict *verdict)
{
    struct kube_change *change = a->change;
    struct kube_policy_facts *f = change->policies;
    AUTO(buf_fini) struct buf text = {0};
    const struct kube_kind *kind;
    struct json_node *object;
    if (!kube_webhook_patch(&a->run, c->hook->webhook, c->kind, verdict, change->mutating->arena,
                            &object, &kind))
        return false;
    if (!object)
        return true;
    if (!kube_policy_converts_by_webhook(&a->write, kind))
        return take_mutated(change, object);
    return (json_tree_write(object, &text) == ST_OK &&
            arena_dup(&f->arena, buf_slice(&text), &f->back) == ST_OK) ||
           kube_fail_engine(a->write.status, ST_NOMEM);
}

enum kube_stepped kube_webhooks_take(struct kube_change *change)
{
    struct kube_hooks *hooks = change->policies->hooks;
    struct kube_webhook_verdict verdict;
    struct asking a;
    bool decides;
    if (!hooks || !hooks->call_count)
        return KUBE_STEP_NEXT;
    struct hook_call *c = &hooks->calls[0];
    if (!begin(&a, change, true) || !judge(&a, c, &verdict, &decides))
        return KUBE_STEP_FAIL;
    bool taken = !decides || take_patch(&a, c, &verdict);
    if (decides)
        count_call(&a, c->hook->webhook, taken ? KUBE_WEBHOOK_ADMITTED : KUBE_WEBHOOK_BROKEN,
                   OK_CODE, c->took_ns);
    if (!taken)
        return KUBE_STEP_FAIL;
    end_calls(hooks);
    pass_on(hooks);
    kube_policies_forget_sights(change->policies);
    return choose_more(change);
}

bool kube_webhooks_begin_again(struct kube_change *change)
{
    struct kube_hooks *hooks = change->policies->hooks;
    if (!hooks || !hooks->called)
        return true;
    hooks->at = 0;
    hooks->output = json_node_copy(change->mutating->arena, object_of(change));
    return hooks->output || kube_fail_engine(&change->call->status, ST_NOMEM);
}

bool kube_webhooks_end_mutating(struct kube_change *change)
{
    struct kube_hooks *hooks = change->policies->hooks;
    if (!hooks || !hooks->called || change->decide || change->operation == KUBE_ADMISSION_CREATE)
        return true;
    struct buf *to = &hooks->kept.mutated;
    buf_reset(to, SIZE_MAX);
    if (change->mutating->mutated && json_tree_write(change->object, to) != ST_OK)
        return kube_fail_engine(&change->call->status, ST_NOMEM);
    hooks->kept.is_mutated = true;
    return true;
}

/* -- Validating -- */

static enum kube_stepped choose_all(struct asking *a)
{
    struct kube_hooks *hooks = a->hooks;
    for (size_t i = 0; i < hooks->validating; i++) {
        struct hook *hook = &hooks->items[i];
        const struct kube_kind *kind;
        enum kube_webhook_concern concern = concerns(a, hook->webhook, &kind);
        if (concern > KUBE_WEBHOOK_CONCERNS)
            return undecided(a, concern);
        hook->kind = concern == KUBE_WEBHOOK_CONCERNS ? kind : NULL;
    }
    charge(a);
    hooks->chosen = true;
    hooks->next = 0;
    return KUBE_STEP_NEXT;
}

/* As many as may be under way together. */
static bool prepare_some(struct asking *a)
{
    struct kube_hooks *hooks = a->hooks;
    size_t count = 0, bytes = 0;
    for (size_t i = hooks->next; i < hooks->validating; i++)
        count += hooks->items[i].kind != NULL;
    if (!count)
        return true;
    if (!make_room(hooks, count))
        return kube_fail_engine(a->write.status, ST_NOMEM);
    for (; hooks->next < hooks->validating && bytes < KUBE_REVIEWS_BYTES_MAX; hooks->next++) {
        struct hook *hook = &hooks->items[hooks->next];
        if (hook->kind && !prepare(a, hook, hook->kind))
            return false;
        if (hook->kind && hooks->call_count)
            bytes += hooks->calls[hooks->call_count - 1].call.body.len;
    }
    return true;
}

enum kube_stepped kube_webhooks_choose_checks(struct kube_change *change)
{
    struct kube_hooks *hooks = change->policies->hooks;
    struct asking a;
    if (!hooks || !hooks->validating || is_idle(change))
        return KUBE_STEP_NEXT;
    if (!begin(&a, change, false))
        return KUBE_STEP_FAIL;
    if (hooks->kept.is_checked) {
        warn_again(&a);
        return KUBE_STEP_NEXT;
    }
    enum kube_stepped chosen = hooks->chosen ? KUBE_STEP_NEXT : choose_all(&a);
    if (chosen != KUBE_STEP_NEXT)
        return chosen;
    if (!prepare_some(&a))
        return KUBE_STEP_FAIL;
    if (!hooks->call_count) {
        end_calls(hooks);
        kube_policies_forget_sights(change->policies);
        hooks->kept.is_checked = true;
    }
    return KUBE_STEP_NEXT;
}

static int compare_arrival(const void *a, const void *b)
{
    const struct hook_call *const *x = a, *const *y = b;
    return ((*x)->arrival > (*y)->arrival) - ((*x)->arrival < (*y)->arrival);
}

enum kube_stepped kube_webhooks_take_checks(struct kube_change *change)
{
    struct kube_hooks *hooks = change->policies->hooks;
    struct kube_status ignored = {0};
    struct asking a;
    bool allowed = true, decides;
    if (!hooks || !hooks->call_count)
        return KUBE_STEP_NEXT;
    struct hook_call **order = arena_calloc(&hooks->arena, hooks->call_count, sizeof(*order));
    if (!begin(&a, change, false))
        return KUBE_STEP_FAIL;
    if (!order)
        return kube_fail_engine(a.write.status, ST_NOMEM);
    for (size_t i = 0; i < hooks->call_count; i++)
        order[i] = &hooks->calls[i];
    qsort(order, hooks->call_count, sizeof(*order), compare_arrival);
    for (size_t i = 0; i < hooks->call_count; i++) {
        struct kube_webhook_verdict verdict;
        allowed = judge(&a, order[i], &verdict, &decides) && allowed;
        if (decides)
            count_call(&a, order[i]->hook->webhook, KUBE_WEBHOOK_ADMITTED, OK_CODE,
                       order[i]->took_ns);
        /* The first refusal is the answer; of the others, their warnings are of interest. */
        if (!allowed)
            a.write.status = &ignored;
    }
    if (!allowed)
        return KUBE_STEP_FAIL;
    end_calls(hooks);
    return choose_more(change);
}
