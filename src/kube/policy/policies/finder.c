#include "kube/policy/policies/finder.h"

#include "base/clock.h"
#include "base/xalloc.h"
#include "io/loop.h"
#include "kube/policy/policies/binding.h"
#include "kube/policy/policies/index.h"
#include "kube/policy/policies/policy.h"
#include "kube/policy/policies/webhook.h"

#define AGAIN_NS (1 * NS_PER_MS)

enum {
    SOON_MAX = 8,     /* turns that are made at once before a timer is used */
    TRIES_MAX = 1000, /* until the lookups are as new as the store was */
};

struct kube_policy_finder {
    struct kube_policy_finder_options options;
    struct kube_lookup *lookups[KUBE_POLICY_PARTS]; /* owned */
    bool stopped;
};

static const struct kube_lookup_kind *const kinds[KUBE_POLICY_PARTS] = {
    [KUBE_POLICIES] = &kube_policy_kind,
    [KUBE_POLICY_BINDINGS] = &kube_policy_binding_kind,
    [KUBE_MUTATING_POLICIES] = &kube_mutating_policy_kind,
    [KUBE_MUTATING_BINDINGS] = &kube_mutating_binding_kind,
    [KUBE_VALIDATING_WEBHOOKS] = &kube_validating_webhooks_kind,
    [KUBE_MUTATING_WEBHOOKS] = &kube_mutating_webhooks_kind,
};

const struct kube_lookup_kind *kube_policy_checks(const char *prefix)
{
    static const struct kube_lookup_kind checks = {
        .read = kube_policy_check,
        .limited = "spec",
        .limits = kube_policy_limits,
        .denies = true,
    };
    for (unsigned part = 0; part < KUBE_POLICY_PARTS; part++) {
        if (strcmp(prefix, kinds[part]->prefix) != 0)
            continue;
        if (part == KUBE_VALIDATING_WEBHOOKS || part == KUBE_MUTATING_WEBHOOKS)
            return &kube_webhooks_checks;
        return kube_policy_part_binds(part) ? &kube_policy_binding_checks : &checks;
    }
    return NULL;
}

/* -- Life -- */

struct kube_policy_finder *kube_policy_finder_new(const struct kube_policy_finder_options *options)
{
    struct kube_policy_finder *f = xcalloc(1, sizeof(*f));
    f->options = *options;
    for (size_t i = 0; i < KUBE_POLICY_PARTS; i++)
        f->lookups[i] = kube_lookup_new(&(struct kube_lookup_options){
            .shard = options->shard,
            .loop = options->loop,
            .under_way = options->under_way,
            .stock = kube_lookup_pool_get(options->pool, kinds[i], 0),
        });
    return f;
}

void kube_policy_finder_stop(struct kube_policy_finder *f)
{
    f->stopped = true;
    for (size_t i = 0; i < KUBE_POLICY_PARTS; i++)
        kube_lookup_stop(f->lookups[i]);
}

void kube_policy_finder_free(struct kube_policy_finder *f)
{
    for (size_t i = 0; f && i < KUBE_POLICY_PARTS; i++)
        kube_lookup_free(f->lookups[i]);
    free(f);
}

/* -- Waiting -- */

static void look(struct kube_policies_wait *w);

static void finish(struct kube_policies_wait *w, enum status status)
{
    w->status = status;
    w->go(w);
}

static void on_lookup(struct kube_lookup_wait *lookup)
{
    struct kube_policies_wait *w = CONTAINER_OF(lookup, struct kube_policies_wait, lookup);
    if (lookup->status == ST_OK)
        look(w);
    else
        finish(w, lookup->status);
}

static void on_soon(struct deferred *deferred)
{
    look(CONTAINER_OF(deferred, struct kube_policies_wait, soon));
}

static void on_again(struct timer *timer)
{
    look(CONTAINER_OF(timer, struct kube_policies_wait, again));
}

/* The hub reads what is new in every turn, and the lookups follow. */
static void look_again(struct kube_policies_wait *w)
{
    struct loop *loop = w->finder->options.loop;
    if (w->tries++ == TRIES_MAX) {
        finish(w, ST_TIMEOUT);
    } else if (w->tries <= SOON_MAX) {
        w->soon.fn = on_soon;
        loop_defer(loop, &w->soon);
    } else {
        w->again.fn = on_again;
        loop_timer_set(loop, &w->again, clock_add(loop_now_ns(loop), AGAIN_NS));
    }
}

static void look(struct kube_policies_wait *w)
{
    struct kube_policy_finder *f = w->finder;
    if (f->stopped) {
        finish(w, ST_STOPPED);
        return;
    }
    for (size_t i = 0; i < KUBE_POLICY_PARTS; i++)
        if (!kube_lookup_ready(f->lookups[i])) {
            w->lookup.go = on_lookup;
            kube_lookup_wait(f->lookups[i], &w->lookup);
            return;
        }
    for (size_t i = 0; i < KUBE_POLICY_PARTS; i++)
        if (kube_lookup_revision(f->lookups[i]) < w->revision) {
            look_again(w);
            return;
        }
    finish(w, ST_OK);
}

void kube_policies_wait(struct kube_policy_finder *finder, struct kube_policies_wait *wait)
{
    wait->finder = finder;
    look(wait);
}

bool kube_policies_ready(struct kube_policy_finder *f)
{
    for (size_t i = 0; i < KUBE_POLICY_PARTS; i++)
        if (!kube_lookup_ready(f->lookups[i]))
            return false;
    return true;
}

/* -- Use -- */

bool kube_policies_have_room(struct kube_policy_finder *f, enum kube_policy_part part)
{
    size_t max = kube_policy_part_binds(part) ? KUBE_POLICY_BINDINGS_MAX : KUBE_POLICIES_MAX;
    return kube_lookup_count(f->lookups[part]) < max && !kube_lookup_not_held(f->lookups[part]);
}

const struct kube_shelf *kube_policies_shelf(struct kube_policy_finder *f,
                                             enum kube_policy_part part)
{
    return kube_lookup_shelf(f->lookups[part], SLICE_EMPTY);
}

struct kube_lookup *kube_policies_lookup(struct kube_policy_finder *f, enum kube_policy_part part)
{
    return f->lookups[part];
}

bool kube_policies_name(const struct kube_shelf *policies, const struct kube_kind *kind)
{
    return kube_policy_index_has(&policies->index, SLICE_LITERAL("*")) ||
           kube_policy_index_has(&policies->index, slice_from_text(kind->plural));
}

struct walk {
    const struct kube_shelf *bindings;
    const struct kube_match_request *request;
    const struct kube_lookup_object *policy;
    bool (*fn)(void *ctx, const struct kube_lookup_object *policy,
               const struct kube_lookup_object *binding);
    void *ctx;
};

static bool on_binding(void *ctx, const struct kube_lookup_object *object)
{
    const struct walk *walk = ctx;
    const struct kube_policy_binding *binding = object->data;
    const struct kube_kind *ignored;
    return !kube_match_resource(&binding->match, walk->request, false, &ignored) ||
           walk->fn(walk->ctx, walk->policy, object);
}

static bool on_policy(void *ctx, const struct kube_lookup_object *object)
{
    struct walk *walk = ctx;
    const struct kube_policy *policy = object->data;
    const struct kube_kind *ignored;
    if (!kube_match_resource(&policy->match, walk->request, false, &ignored))
        return true;
    walk->policy = object;
    return kube_policy_index_each(&walk->bindings->index, object->name, on_binding, walk);
}

bool kube_policies_each(const struct kube_shelf *policies, const struct kube_shelf *bindings,
                        const struct kube_match_request *request,
                        bool (*fn)(void *ctx, const struct kube_lookup_object *policy,
                                   const struct kube_lookup_object *binding),
                        void *ctx)
{
    struct walk walk = {.bindings = bindings, .request = request, .fn = fn, .ctx = ctx};
    return kube_policy_index_each(&policies->index, SLICE_LITERAL("*"), on_policy, &walk) &&
           kube_policy_index_each(&policies->index, slice_from_text(request->kind->plural),
                                  on_policy, &walk);
}

struct webhooks_walk {
    const struct kube_match_request *request;
    bool (*fn)(void *ctx, const struct kube_lookup_object *configuration,
               const struct kube_webhook *webhook);
    void *ctx;
};

static bool on_configuration(void *ctx, const struct kube_lookup_object *object)
{
    const struct webhooks_walk *walk = ctx;
    const struct kube_webhooks *webhooks = object->data;
    const struct kube_kind *ignored;
    bool goes_on = true;
    for (size_t i = 0; i < webhooks->count && goes_on; i++)
        if (kube_match_resource(&webhooks->items[i].rule.match, walk->request, false, &ignored))
            goes_on = walk->fn(walk->ctx, object, &webhooks->items[i]);
    return goes_on;
}

bool kube_webhooks_each(const struct kube_shelf *configurations,
                        const struct kube_match_request *request,
                        bool (*fn)(void *ctx, const struct kube_lookup_object *configuration,
                                   const struct kube_webhook *webhook),
                        void *ctx)
{
    struct webhooks_walk walk = {.request = request, .fn = fn, .ctx = ctx};
    const struct version_map *index = &configurations->index;
    return kube_policy_index_each(index, SLICE_LITERAL("*"), on_configuration, &walk) &&
           kube_policy_index_each(index, slice_from_text(request->kind->plural), on_configuration,
                                  &walk);
}
