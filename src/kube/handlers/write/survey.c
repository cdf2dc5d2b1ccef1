#include "kube/handlers/write/survey.h"

#include "base/clock.h"
#include "base/metric/turn.h"
#include "base/slices.h"
#include "kube/call/conversion.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/policy/admission/admission.h"
#include "kube/policy/security/review.h"

#include <stdio.h>

enum {
    PODS_MAX = 3000,
    PAGE_PODS = 100,
    TURN_BYTES = 64 << 10,     /* pods that are reviewed in one turn, as they are stored */
    POD_BYTES_MAX = 128 << 20, /* memory that the review of one pod may take */
    WARNING_BYTES = 512,       /* a warning whose length is limited */
};
#define SURVEY_NS (1 * NS_PER_S)

/* Pods that violate the standard in the same way. */
struct finding {
    struct slice violations, first; /* first: the name of one of them */
    size_t pods;
};

/* In the arena of the call. */
struct kube_survey {
    struct kube_change *change;
    struct pod_standard standard;
    struct slice namespace;
    struct slice prefix, end, from; /* keys; from: of the next page */
    struct pb_range_request range;
    struct deferred more;
    int64_t until_ns;
    int64_t total; /* pods in the namespace */
    int64_t reviewed;
    struct finding *findings;
    size_t finding_count, finding_room;
};

/* -- Whether it is necessary -- */

static struct pod_policy policy_of(struct kube_change *change, const struct json_node *namespace)
{
    const struct pod_policy defaults = pod_policy_default();
    struct pod_policy policy;
    pod_policy_read(json_node_path(namespace, "metadata.labels"), &defaults, change->arena, &policy,
                    NULL);
    return policy;
}

static bool is_stricter(const struct pod_standard *now, const struct pod_standard *before)
{
    if (pod_standard_equal(now, before) || now->level == POD_LEVEL_PRIVILEGED)
        return false;
    return now->minor != before->minor || now->level > before->level;
}

/* -- One pod -- */

static bool add_finding(struct kube_survey *s, struct slice violations, struct slice name)
{
    struct arena *arena = &s->change->call->arena;
    for (size_t i = 0; i < s->finding_count; i++)
        if (slice_equal(s->findings[i].violations, violations)) {
            s->findings[i].pods++;
            return true;
        }
    if (s->finding_count == s->finding_room) {
        size_t room = s->finding_room ? 2 * s->finding_room : 8;
        struct finding *findings = arena_alloc(arena, room * sizeof(*findings));
        if (!findings)
            return false;
        if (s->finding_count)
            memcpy(findings, s->findings, s->finding_count * sizeof(*findings));
        s->findings = findings;
        s->finding_room = room;
    }
    struct finding *finding = &s->findings[s->finding_count];
    *finding = (struct finding){.pods = 1};
    if (arena_dup(arena, violations, &finding->violations) != ST_OK ||
        arena_dup(arena, name, &finding->first) != ST_OK)
        return false;
    s->finding_count++;
    return true;
}

/* A pod that cannot be read, because something else has stored it, violates nothing. */
static enum status review(struct kube_survey *s, struct kube_kv kv)
{
    static const struct slice kind = SLICE_LITERAL("pods");
    const struct kube_kind *pods = kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), kind);
    AUTO(buf_fini) struct buf converted = {0}, violations = {0};
    struct slice json;
    struct json_node *pod;
    struct error ignored;
    struct arena arena;
    arena_init(&arena, NULL, 0, POD_BYTES_MAX);
    arena_charge(&arena, s->change->call->arena.account);
    enum status status = kube_conversion_json(pods, kv.value, kv.mod_revision, &converted, &json);
    if (status == ST_OK)
        status = json_tree_read(&arena, json, &pod, &ignored);
    if (status == ST_OK) {
        status = pod_review(&s->standard, json_node_named(pod, "metadata"),
                            json_node_named(pod, "spec"), &arena, false, &violations);
        if (status == ST_OK && violations.len &&
            !add_finding(s, buf_slice(&violations),
                         slice_sub(kv.key, s->prefix.len, kv.key.len - s->prefix.len)))
            status = ST_NOMEM;
    }
    arena_fini(&arena);
    return status == ST_NOMEM ? status : ST_OK;
}

/* -- Warnings -- */

/* `web-1 (and 2 other pods): privileged, host namespaces`. Empty: there is no memory for it. */
static struct slice text_of(struct kube_survey *s, const struct finding *finding)
{
    AUTO(buf_fini) struct buf text = {0};
    struct slice copy = SLICE_EMPTY;
    enum status status = buf_append(&text, finding->first);
    if (status == ST_OK && finding->pods > 1)
        status = buf_append_format(&text, " (and %zu other %s)", finding->pods - 1,
                                   finding->pods == 2 ? "pod" : "pods");
    if (status == ST_OK)
        status = buf_append_text(&text, ": ");
    if (status == ST_OK && buf_append(&text, finding->violations) == ST_OK)
        (void)!arena_dup(&s->change->call->arena, buf_slice(&text), &copy);
    return copy;
}

/* Warnings for which there is no memory are left out. */
static void warn(struct kube_survey *s)
{
    struct kube_call *call = s->change->call;
    char text[WARNING_BYTES], standard[POD_STANDARD_BYTES];
    struct slice *texts = arena_calloc(&call->arena, s->finding_count + 1, sizeof(*texts));
    if (s->reviewed < s->total) {
        snprintf(text, sizeof(text),
                 "new PodSecurity enforce level only checked against the first %lld of %lld "
                 "existing pods",
                 (long long)s->reviewed, (long long)s->total);
        kube_call_warn(call, slice_from_text(text));
    }
    if (!s->finding_count || !texts)
        return;
    snprintf(text, sizeof(text),
             "existing pods in namespace \"%.*s\" violate the new PodSecurity enforce level "
             "\"%s\"",
             SLICE_ARGS(s->namespace), pod_standard_text(&s->standard, standard));
    kube_call_warn(call, slice_from_text(text));
    for (size_t i = 0; i < s->finding_count; i++)
        texts[i] = text_of(s, &s->findings[i]);
    slices_sort(texts, s->finding_count);
    for (size_t i = 0; i < s->finding_count; i++)
        if (texts[i].len)
            kube_call_warn(call, texts[i]);
}

/* -- Pages -- */

static void end_survey(struct kube_survey *s, enum status status)
{
    struct kube_change *change = s->change;
    if (!kube_call_done(change->call))
        return;
    if (status != ST_OK)
        /* Kubernetes, too, changes the namespace if it cannot read its pods. */
        kube_call_warn(change->call, SLICE_LITERAL("failed to list pods while checking new "
                                                   "PodSecurity enforce level"));
    else
        warn(s);
    kube_change_next(change);
}

/* Reviews some pods of a page. Returns whether the page has more. */
static bool review_some(struct kube_survey *s, enum status *ret_status)
{
    struct engine_range *range = &s->change->call->range;
    struct arena *arena = &s->change->call->arena;
    struct slice field;
    turn_work("reviewing the pods of a namespace", s->prefix);
    for (size_t bytes = 0; bytes < TURN_BYTES; bytes += field.len) {
        *ret_status = range->op.status;
        if (!engine_range_next(range, &field))
            return false;
        struct kube_kv kv = kube_kv_of(field);
        /* The next page begins behind this key. */
        uint8_t *from = arena_alloc(arena, kv.key.len + 1);
        *ret_status = from ? review(s, kv) : ST_NOMEM;
        if (*ret_status != ST_OK)
            return false;
        slice_copy(from, kv.key);
        from[kv.key.len] = '\0';
        s->from = slice_of(from, kv.key.len + 1);
        s->reviewed++;
    }
    return true;
}

static void read_page(struct kube_survey *s);

static void review_later(struct kube_survey *s)
{
    struct kube_call *call = s->change->call;
    kube_call_hold(call);
    loop_defer(call->api->loop, &s->more);
}

static void on_more(struct deferred *deferred)
{
    struct kube_survey *s = CONTAINER_OF(deferred, struct kube_survey, more);
    struct kube_call *call = s->change->call;
    enum status status;
    if (review_some(s, &status)) {
        review_later(s);
        (void)!kube_call_done(call);
        return;
    }
    bool has_next = call->range.more;
    engine_range_close(&call->range);
    if (status == ST_OK && has_next && s->reviewed < PODS_MAX &&
        loop_now_ns(call->api->loop) < s->until_ns) {
        read_page(s);
        (void)!kube_call_done(call);
        return;
    }
    end_survey(s, status);
}

static void on_page(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct kube_survey *s = call->handler.change->survey;
    enum status status = op->status;
    if (status != ST_OK) {
        engine_range_close(&call->range);
        end_survey(s, status);
        return;
    }
    if (!s->reviewed)
        s->total = call->range.count;
    review_later(s);
    (void)!kube_call_done(call);
}

static void read_page(struct kube_survey *s)
{
    s->range = (struct pb_range_request){
        .key = s->from.len ? s->from : s->prefix, .range_end = s->end, .limit = PAGE_PODS};
    kube_call_range(s->change->call, &s->range, on_page);
}

enum kube_stepped kube_survey_pods(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct arena *arena = &call->arena;
    if (!change->old || !kube_admission_reviews_pods(call->api->admission))
        return KUBE_STEP_NEXT;
    struct pod_policy now = policy_of(change, change->object);
    struct pod_policy before = policy_of(change, change->old);
    /* Nearly every write of a namespace. */
    if (!is_stricter(&now.enforce, &before.enforce))
        return KUBE_STEP_NEXT;
    if (!change->survey)
        change->survey = arena_alloc(arena, sizeof(struct kube_survey));
    struct kube_survey *s = change->survey;
    if (!s)
        return kube_fail_engine(&call->status, ST_NOMEM);
    *s = (struct kube_survey){
        .change = change,
        .standard = now.enforce,
        .namespace = change->name,
        .more = {.fn = on_more},
        .until_ns = clock_add(loop_now_ns(call->api->loop), SURVEY_NS),
    };
    if (kube_key_make(arena, "/registry/pods/", change->name, SLICE_EMPTY, &s->prefix) != ST_OK ||
        kube_prefix_end(arena, s->prefix, &s->end) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    read_page(s);
    return KUBE_STEP_LEFT;
}
