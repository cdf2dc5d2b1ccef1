#include "kube/handlers/write/survey.h"

#include "base/clock.h"
#include "base/metric/turn.h"
#include "base/slices.h"
#include "kube/call/conversion.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/policy/admission/admission.h"
#include "kube/policy/security/review.h"
#include "kube/policy/security/settings.h"

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
    const struct pod_security_settings *settings;
    struct pod_standard standard;
    struct slice namespace;
    struct slice prefix, end, from; /* keys; from: of the next page */
    struct pb_range_request range;
    struct deferred more;
    int64_t until_ns;
    /* The first pass reviews one pod of each controller, and the second one all others. */
    bool is_second;
    struct json_node *controllers; /* the pod that was reviewed, by the uid of its controller */
    int64_t left_out;              /* pods for the second pass */
    int64_t total;                 /* pods in the namespace that are not exempt */
    int64_t reviewed;
    struct finding *findings;
    size_t finding_count, finding_room;
};

/* -- Whether it is necessary -- */

static struct pod_policy policy_of(struct kube_change *change, const struct json_node *namespace)
{
    const struct pod_security_settings *settings = change->call->api->admission->set.pod_security;
    struct pod_policy policy;
    pod_policy_read(json_node_path(namespace, "metadata.labels"), &settings->defaults,
                    change->arena, &policy, NULL);
    return policy;
}

/* -- One pod -- */

static bool add_finding(struct kube_survey *s, struct slice violations, struct slice name)
{
    struct arena *arena = &s->change->call->arena;
    for (size_t i = 0; i < s->finding_count; i++) {
        struct finding *known = &s->findings[i];
        if (!slice_equal(known->violations, violations))
            continue;
        known->pods++;
        return slice_compare(name, known->first) > 0 ||
               arena_dup(arena, name, &known->first) == ST_OK;
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

static bool is_exempt(const struct kube_survey *s, const struct json_node *pod, struct arena *arena)
{
    struct slice class;
    const struct json_node *node = json_node_path(pod, "spec.runtimeClassName");
    return s->settings->runtime_classes.count && node &&
           json_node_text(node, arena, &class) == ST_OK &&
           pod_names_have(&s->settings->runtime_classes, class);
}

/* Empty: the pod has no controller. */
static struct slice controller_of(const struct json_node *pod, struct arena *arena)
{
    struct slice uid;
    const struct json_node *owner = json_node_items_at(pod, "metadata.ownerReferences");
    while (owner && !json_node_is_true(json_node_named(owner, "controller")))
        owner = owner->next;
    const struct json_node *node = json_node_named(owner, "uid");
    return node && json_node_text(node, arena, &uid) == ST_OK ? uid : SLICE_EMPTY;
}

/* Whether this pass reviews the pod. */
static bool takes(struct kube_survey *s, struct slice name, struct slice controller,
                  enum status *status)
{
    struct arena *arena = &s->change->call->arena;
    const struct json_node *reviewed = json_node_member(s->controllers, controller);
    if (!controller.len)
        return !s->is_second;
    if (s->is_second)
        return reviewed && !slice_equal(reviewed->text, name);
    if (reviewed) {
        s->left_out++;
        return false;
    }
    struct json_node *text = json_node_new_text(arena, name);
    *status = text ? json_node_set(arena, s->controllers, controller, text) : ST_NOMEM;
    return *status == ST_OK;
}

static enum status review_pod(struct kube_survey *s, struct slice name, const struct json_node *pod,
                              struct arena *arena)
{
    AUTO(buf_fini) struct buf violations = {0};
    enum status status = ST_OK;
    if (is_exempt(s, pod, arena)) {
        s->total -= !s->is_second;
        return ST_OK;
    }
    if (s->reviewed == PODS_MAX || !takes(s, name, controller_of(pod, arena), &status))
        return status;
    s->reviewed++;
    TRY(pod_review(&s->standard, json_node_named(pod, "metadata"), json_node_named(pod, "spec"),
                   arena, false, &violations));
    return !violations.len || add_finding(s, buf_slice(&violations), name) ? ST_OK : ST_NOMEM;
}

/* A pod that cannot be read, because something else has stored it, violates nothing. */
static enum status review(struct kube_survey *s, struct kube_kv kv)
{
    static const struct slice kind = SLICE_LITERAL("pods");
    const struct kube_kind *pods = kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), kind);
    AUTO(buf_fini) struct buf converted = {0};
    struct slice json, name = slice_sub(kv.key, s->prefix.len, kv.key.len - s->prefix.len);
    struct json_node *pod = NULL;
    struct error ignored;
    struct arena arena;
    arena_init(&arena, NULL, 0, POD_BYTES_MAX);
    arena_charge(&arena, s->change->call->arena.account);
    enum status status = kube_conversion_json(pods, kv.value, kv.mod_revision, &converted, &json);
    if (status == ST_OK)
        status = json_tree_read(&arena, json, &pod, &ignored);
    if (status == ST_OK)
        status = review_pod(s, name, pod, &arena);
    else if (status != ST_NOMEM)
        s->reviewed += !s->is_second;
    if (arena_ran_out(&arena))
        status = ST_NOMEM;
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

/* The first pass reads on to find controllers that it has not seen, and exempt pods. */
static bool wants_page(const struct kube_survey *s, int64_t now_ns)
{
    if (s->reviewed == PODS_MAX && (s->is_second || !s->settings->runtime_classes.count))
        return false;
    /* The second pass gets half of the time if there is something for it. */
    bool shares = !s->is_second && s->left_out;
    return now_ns < s->until_ns - (shares ? SURVEY_NS / 2 : 0);
}

static bool begin_second_pass(struct kube_survey *s, int64_t now_ns)
{
    if (s->is_second || !s->left_out || s->reviewed == PODS_MAX || now_ns >= s->until_ns)
        return false;
    s->is_second = true;
    s->from = SLICE_EMPTY;
    return true;
}

static void on_more(struct deferred *deferred)
{
    struct kube_survey *s = CONTAINER_OF(deferred, struct kube_survey, more);
    struct kube_call *call = s->change->call;
    int64_t now_ns = loop_now_ns(call->api->loop);
    enum status status;
    if (review_some(s, &status)) {
        review_later(s);
        (void)!kube_call_done(call);
        return;
    }
    bool has_next = call->range.more;
    engine_range_close(&call->range);
    if (status == ST_OK && ((has_next && wants_page(s, now_ns)) || begin_second_pass(s, now_ns))) {
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
    if (!s->from.len && !s->is_second)
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
    const struct pod_security_settings *settings = call->api->admission->set.pod_security;
    /* Nearly every write of a namespace. */
    if (!pod_standard_is_stricter(&now.enforce, &before.enforce) ||
        pod_names_have(&settings->namespaces, change->name))
        return KUBE_STEP_NEXT;
    if (!change->survey)
        change->survey = arena_alloc(arena, sizeof(struct kube_survey));
    struct kube_survey *s = change->survey;
    if (!s)
        return kube_fail_engine(&call->status, ST_NOMEM);
    *s = (struct kube_survey){
        .change = change,
        .settings = settings,
        .controllers = json_node_new(arena, JSON_TYPE_OBJECT),
        .standard = now.enforce,
        .namespace = change->name,
        .more = {.fn = on_more},
        .until_ns = clock_add(loop_now_ns(call->api->loop), SURVEY_NS),
    };
    if (!s->controllers ||
        kube_key_make(arena, "/registry/pods/", change->name, SLICE_EMPTY, &s->prefix) != ST_OK ||
        kube_prefix_end(arena, s->prefix, &s->end) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    read_page(s);
    return KUBE_STEP_LEFT;
}
