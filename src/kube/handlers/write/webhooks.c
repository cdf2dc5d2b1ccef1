#include "kube/handlers/write/webhooks.h"

#include "base/memory/budget.h"
#include "codec/json/writer.h"
#include "kube/call/call_offload.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/webhooks_private.h"

#include <stdlib.h>

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
        struct kube_hook *more = arena_calloc(&f->arena, capacity, sizeof(*more));
        if (!more)
            return false;
        if (hooks->count)
            memcpy(more, hooks->items, hooks->count * sizeof(*more));
        hooks->items = more;
        hooks->capacity = capacity;
    }
    kube_lookup_hold(configuration);
    hooks->items[hooks->count++] =
        (struct kube_hook){.configuration = configuration, .webhook = webhook};
    return true;
}

/* By the name of the configuration, and in its order. */
static int compare_hooks(const void *a, const void *b)
{
    const struct kube_hook *x = a, *y = b;
    int order = slice_compare(x->configuration->name, y->configuration->name);
    if (order)
        return order;
    return (x->webhook > y->webhook) - (x->webhook < y->webhook);
}

static void sort(struct kube_hook *items, size_t count)
{
    if (count)
        qsort(items, count, sizeof(*items), compare_hooks);
}

static void forget(struct kube_hooks *hooks)
{
    struct kube_hooks_kept *kept = &hooks->kept;
    struct account *account = hooks->change->call->arena.account;
    account_buf_fini(account, &kept->mutated);
    account_buf_fini(account, &kept->checked);
    buf_fini(&kept->warnings);
    *kept = (struct kube_hooks_kept){.revision = hooks->change->revision};
}

/* Keeps a text, which is charged to the client. False: there is no memory, and the webhooks are
 * called again in another attempt. */
static bool keep(struct kube_hooks *hooks, struct buf *to, struct buf *text)
{
    struct account *account = hooks->change->call->arena.account;
    size_t charged = 0;
    account_buf_fini(account, to);
    *to = *text;
    *text = (struct buf){0};
    return account_follow(account, to, &charged) == ST_OK;
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
    if (hooks->kept.revision != f->change->revision)
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

void kube_webhooks_release(struct kube_hooks *hooks)
{
    if (!hooks)
        return;
    kube_hooks_end_calls(hooks);
    for (size_t i = 0; i < hooks->count; i++)
        kube_lookup_release(hooks->items[i].configuration);
    *hooks = (struct kube_hooks){.change = hooks->change, .kept = hooks->kept};
}

void kube_webhooks_free(struct kube_hooks *hooks)
{
    if (!hooks)
        return;
    kube_webhooks_release(hooks);
    forget(hooks);
}

/* Back to the step before the one that chooses. */
static enum kube_stepped choose_more(struct kube_change *change)
{
    change->step = kube_step_before(kube_step_before(kube_step_before(change->step)));
    return KUBE_STEP_JUMP;
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
    struct kube_hook *hook = &hooks->items[hooks->validating + hooks->at++];
    hooks->called = true;
    hook->was_called |= hook->webhook->rule.reinvoked;
}

enum { MOVED_BYTES_MIN = 32 << 10 }; /* size of a review; smaller objects are not worth the time */

/* Where patches are applied. What was posted to an object is kept with the call. */
static struct arena *patch_arena(struct kube_change *change)
{
    struct arena *arena = &change->patched[change->patched_at];
    if (change->posted)
        return &change->call->arena;
    if (!arena->limit_bytes) {
        arena_init(arena, NULL, 0, change->call->api->attempt_bytes_max);
        arena_charge(arena, change->call->arena.account);
    }
    return arena;
}

/*
 * Moves the object to memory of its own, and frees what it took to make it, so that a write which
 * waits for one webhook after another holds one object and not one for each of them. The object
 * with which the second pass begins stays, because plugins have gathered what belongs to it.
 */
static bool move_object(struct kube_change *change, size_t review_bytes)
{
    enum { ALL = 0 + 1 + 2 };
    unsigned from = change->patched_at;
    if (change->decide || review_bytes < MOVED_BYTES_MIN)
        return true;
    change->patched_at = ALL - from - change->patched_kept;
    const struct json_node *object = kube_match_keep(patch_arena(change), change->object);
    if (!object)
        return kube_fail_engine(&change->call->status, ST_NOMEM);
    change->object = (struct json_node *)(uintptr_t)object; /* in its own memory, it may change */
    arena_fini(&change->patched[from]);
    change->patched[from] = (struct arena){0};
    return true;
}

/* An attempt with the same stored object has been here. */
static bool take_kept(struct kube_asking *a)
{
    struct kube_hooks *hooks = a->hooks;
    struct kube_change *change = a->change;
    struct slice text = buf_slice(&hooks->kept.mutated), copy;
    struct json_node *object;
    struct error ignored;
    hooks->at = hooks->count - hooks->validating;
    change->mutating->again = true;
    kube_hooks_warn_again(a);
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
    if (arena_dup(patch_arena(change), json, &copy) != ST_OK ||
        json_tree_read(patch_arena(change), copy, &object, &ignored) != ST_OK)
        return kube_fail_engine(&change->call->status, ST_NOMEM);
    if (!take_mutated(change, object) || !move_object(change, json.len))
        return false;
    pass_on(f->hooks);
    return true;
}

enum kube_stepped kube_webhooks_choose(struct kube_change *change)
{
    const struct kube_kind *kind;
    struct kube_hooks *hooks = change->policies->hooks;
    struct kube_asking a;
    if (!kube_webhooks_mutate(change->policies) || kube_asking_is_idle(change))
        return KUBE_STEP_NEXT;
    if (change->policies->taken.len && !take_converted(change))
        return KUBE_STEP_FAIL;
    if (!kube_asking_begin(&a, change, true))
        return KUBE_STEP_FAIL;
    if (!hooks->at && !change->mutating->again && hooks->kept.is_mutated)
        return take_kept(&a);
    if (hooks->output && !json_node_equal(hooks->output, object_of(change)))
        require_repeats(hooks);
    hooks->output = NULL;
    while (hooks->at < hooks->count - hooks->validating) {
        struct kube_hook *hook = &hooks->items[hooks->validating + hooks->at];
        enum kube_webhook_concern concern = kube_hook_concerns(&a, hook->webhook, &kind);
        if (concern > KUBE_WEBHOOK_CONCERNS)
            return kube_asking_undecided(&a, concern);
        if (concern == KUBE_WEBHOOK_PASSES || (change->mutating->again && !hook->is_repeated)) {
            hooks->at++;
            continue;
        }
        if (!kube_hooks_make_room(hooks, 1))
            return kube_fail_engine(a.write.status, ST_NOMEM);
        if (!kube_hook_prepare(&a, hook, kind))
            return KUBE_STEP_FAIL;
        if (hooks->call_count)
            break;
        kube_hooks_end_calls(hooks);
        pass_on(hooks);
    }
    kube_asking_charge(&a);
    if (!hooks->call_count)
        kube_policies_forget_sights(change->policies);
    return KUBE_STEP_NEXT;
}

/* An object in another version is converted back first, by the step before choose. */
static bool take_patch(struct kube_asking *a, struct kube_hook_call *c,
                       const struct kube_webhook_verdict *verdict)
{
    struct kube_change *change = a->change;
    struct kube_policy_facts *f = change->policies;
    AUTO(buf_fini) struct buf text = {0};
    const struct kube_kind *kind;
    struct json_node *object;
    if (!kube_webhook_patch(&a->run, c->hook->webhook, c->kind, verdict, patch_arena(change),
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
    struct kube_asking a;
    bool decides;
    if (!hooks || !hooks->call_count)
        return KUBE_STEP_NEXT;
    if (kube_hooks_are_long(hooks))
        return KUBE_STEP_LONG;
    struct kube_hook_call *c = &hooks->calls[0];
    if (!kube_asking_begin(&a, change, true) || !kube_hook_judge(&a, c, &verdict, &decides))
        return KUBE_STEP_FAIL;
    bool taken = !decides || take_patch(&a, c, &verdict);
    if (decides)
        kube_hook_count(&a, c->hook->webhook, taken ? KUBE_WEBHOOK_ADMITTED : KUBE_WEBHOOK_BROKEN,
                        0, c->took_ns);
    if (!taken || (decides && verdict.patch.len && !move_object(change, c->call.body.len)))
        return KUBE_STEP_FAIL;
    kube_hooks_end_calls(hooks);
    /* A webhook is not called again because of what it has changed itself. */
    if (!change->policies->back.len)
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
    change->patched_kept = change->patched_at;
    change->patched_at = (change->patched_kept + 1) % COUNT_OF(change->patched);
    hooks->output = json_node_copy(change->mutating->arena, object_of(change));
    return hooks->output || kube_fail_engine(&change->call->status, ST_NOMEM);
}

bool kube_webhooks_end_mutating(struct kube_change *change)
{
    struct kube_hooks *hooks = change->policies->hooks;
    if (!hooks || !hooks->called || change->decide || change->operation == KUBE_ADMISSION_CREATE)
        return true;
    AUTO(buf_fini) struct buf text = {0};
    if (change->mutating->mutated && json_tree_write(change->object, &text) != ST_OK)
        return kube_fail_engine(&change->call->status, ST_NOMEM);
    hooks->kept.is_mutated = keep(hooks, &hooks->kept.mutated, &text);
    return true;
}

/* -- Validating -- */

static enum status write_member(struct json_writer *w, const struct json_node *member)
{
    json_key_of(w, member->key);
    json_raw(w, SLICE_EMPTY);
    return json_tree_write(member, w->out);
}

static enum status write_metadata(struct json_writer *w, const struct json_node *metadata)
{
    json_key_of(w, metadata->key);
    json_begin_object(w);
    for (const struct json_node *at = metadata->first; at; at = at->next)
        if (!slice_is(at->key, "managedFields"))
            TRY(write_member(w, at));
    json_end_object(w);
    return ST_OK;
}

/* What is stored if it is allowed, as far as it does not depend on the time of the attempt: without
 * managedFields, whose other contents follow from the request. Of a deletion, nothing. */
static enum status text_of_checked(const struct kube_change *change, struct buf *to)
{
    const struct json_node *at = change->decide ? NULL : change->object->first;
    struct json_writer w;
    json_writer_init(&w, to);
    json_begin_object(&w);
    for (; at; at = at->next) {
        bool is_metadata = slice_is(at->key, "metadata") && at->type == JSON_TYPE_OBJECT;
        TRY(is_metadata ? write_metadata(&w, at) : write_member(&w, at));
    }
    json_end_object(&w);
    return json_writer_finish(&w);
}

/* Whether an attempt before has asked about the same object. */
static bool was_checked(const struct kube_hooks *hooks)
{
    AUTO(buf_fini) struct buf text = {0};
    return hooks->kept.is_checked && text_of_checked(hooks->change, &text) == ST_OK &&
           slice_equal(buf_slice(&text), buf_slice(&hooks->kept.checked));
}

static void keep_checked(struct kube_hooks *hooks)
{
    AUTO(buf_fini) struct buf text = {0};
    hooks->kept.is_checked = hooks->asked && text_of_checked(hooks->change, &text) == ST_OK &&
                             keep(hooks, &hooks->kept.checked, &text);
}

static enum kube_stepped choose_all(struct kube_asking *a)
{
    struct kube_hooks *hooks = a->hooks;
    for (size_t i = 0; i < hooks->validating; i++) {
        struct kube_hook *hook = &hooks->items[i];
        const struct kube_kind *kind;
        enum kube_webhook_concern concern = kube_hook_concerns(a, hook->webhook, &kind);
        if (concern > KUBE_WEBHOOK_CONCERNS)
            return kube_asking_undecided(a, concern);
        hook->kind = concern == KUBE_WEBHOOK_CONCERNS ? kind : NULL;
    }
    kube_asking_charge(a);
    hooks->chosen = true;
    hooks->next = 0;
    return KUBE_STEP_NEXT;
}

/* As many as may be under way together. Long reviews are written on the worker, where the step
 * continues. */
static enum kube_stepped prepare_some(struct kube_asking *a)
{
    enum { SHORT_BYTES = 256 << 10 }; /* are written within about 1 ms */
    struct kube_hooks *hooks = a->hooks;
    if (!hooks->calls && !kube_hooks_make_room(hooks, KUBE_REVIEWS_MAX))
        return kube_fail_engine(a->write.status, ST_NOMEM);
    for (; hooks->next < hooks->validating && hooks->call_count < KUBE_REVIEWS_MAX &&
           hooks->review_bytes < KUBE_REVIEWS_BYTES_MAX;
         hooks->next++) {
        struct kube_hook *hook = &hooks->items[hooks->next];
        if (hook->kind && hooks->review_bytes > SHORT_BYTES && kube_call_can_leave(a->change->call))
            return KUBE_STEP_LONG;
        if (hook->kind && !kube_hook_prepare(a, hook, hook->kind))
            return KUBE_STEP_FAIL;
    }
    return KUBE_STEP_NEXT;
}

enum kube_stepped kube_webhooks_choose_checks(struct kube_change *change)
{
    struct kube_hooks *hooks = change->policies->hooks;
    struct kube_asking a;
    if (!hooks || !hooks->validating || kube_asking_is_idle(change))
        return KUBE_STEP_NEXT;
    if (!kube_asking_begin(&a, change, false))
        return KUBE_STEP_FAIL;
    if (!hooks->asked && !hooks->calls && was_checked(hooks)) {
        kube_hooks_warn_again(&a);
        return KUBE_STEP_NEXT;
    }
    enum kube_stepped stepped = hooks->chosen ? KUBE_STEP_NEXT : choose_all(&a);
    if (stepped == KUBE_STEP_NEXT)
        stepped = prepare_some(&a);
    if (stepped != KUBE_STEP_NEXT)
        return stepped;
    if (!hooks->call_count) {
        kube_hooks_end_calls(hooks);
        kube_policies_forget_sights(change->policies);
        keep_checked(hooks);
    }
    hooks->asked |= hooks->call_count != 0;
    return KUBE_STEP_NEXT;
}

static int compare_arrival(const void *a, const void *b)
{
    const struct kube_hook_call *const *x = a, *const *y = b;
    return ((*x)->arrival > (*y)->arrival) - ((*x)->arrival < (*y)->arrival);
}

enum kube_stepped kube_webhooks_take_checks(struct kube_change *change)
{
    struct kube_hooks *hooks = change->policies->hooks;
    struct kube_status ignored = {0};
    struct kube_asking a;
    bool allowed = true, decides;
    if (!hooks || !hooks->call_count)
        return KUBE_STEP_NEXT;
    if (kube_hooks_are_long(hooks))
        return KUBE_STEP_LONG;
    struct kube_hook_call **order = arena_calloc(&hooks->arena, hooks->call_count, sizeof(*order));
    if (!kube_asking_begin(&a, change, false))
        return KUBE_STEP_FAIL;
    if (!order)
        return kube_fail_engine(a.write.status, ST_NOMEM);
    for (size_t i = 0; i < hooks->call_count; i++)
        order[i] = &hooks->calls[i];
    qsort(order, hooks->call_count, sizeof(*order), compare_arrival);
    for (size_t i = 0; i < hooks->call_count; i++) {
        struct kube_webhook_verdict verdict;
        allowed = kube_hook_judge(&a, order[i], &verdict, &decides) && allowed;
        if (decides)
            kube_hook_count(&a, order[i]->hook->webhook, KUBE_WEBHOOK_ADMITTED, 0,
                            order[i]->took_ns);
        /* The first refusal is the answer; of the others, their warnings are of interest. */
        if (!allowed)
            a.write.status = &ignored;
    }
    if (!allowed)
        return KUBE_STEP_FAIL;
    kube_hooks_end_calls(hooks);
    return choose_more(change);
}
