#include "kube/handlers/write/certificate_request.h"

#include "kube/policy/access/rbac/user.h"

#define CONDITIONS "status.conditions"

static const char *const approvals[] = {"Approved", "Denied"};

/* -- The spec -- */

enum kube_stepped kube_certificate_create(struct kube_change *change)
{
    struct kube_call *call = change->call;
    const struct kube_meta *meta = &change->meta;
    static const char *const members[] = {"username", "uid", "groups", "extra"};
    struct json_node *spec, *user;
    user = kube_user_json(meta->arena, kube_call_user(call));
    if (!user)
        return kube_fail_engine(&call->status, ST_NOMEM);
    if (!kube_meta_object(meta, change->object, "spec", &spec))
        return false;
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        struct json_node *sent = json_node_named(spec, members[i]);
        struct json_node *value = json_node_named(user, members[i]);
        if (sent)
            json_node_remove(spec, sent);
        if (!value)
            continue;
        json_node_remove(user, value);
        if (json_node_set(meta->arena, spec, slice_from_text(members[i]), value) != ST_OK)
            return kube_fail_engine(&call->status, ST_NOMEM);
    }
    return true;
}

bool kube_certificate_update(struct kube_change *change, const struct json_node *stored,
                             struct json_node *object)
{
    const struct json_node *spec = json_node_named(stored, "spec");
    struct json_node *copy;
    if (!spec)
        return true;
    copy = json_node_copy(&change->scratch, spec);
    return (copy &&
            json_node_set(&change->scratch, object, SLICE_LITERAL("spec"), copy) == ST_OK) ||
           kube_fail_engine(&change->call->status, ST_NOMEM);
}

/* -- Conditions -- */

static size_t count_of_type(const struct json_node *object, const char *type)
{
    size_t count = 0;
    const struct json_node *one = json_node_items_at(object, CONDITIONS);
    for (; one; one = one->next)
        count += json_node_text_is(one, "type", type);
    return count;
}

/* The conditions of this type become what they were, unless their number has changed. */
static bool keep_conditions(struct kube_change *change, const struct json_node *stored,
                            struct json_node *object, const char *type)
{
    const struct json_node *old = json_node_items_at(stored, CONDITIONS);
    struct json_node *list = json_node_path(object, CONDITIONS), *next;
    if (!count_of_type(stored, type) || count_of_type(stored, type) != count_of_type(object, type))
        return true;
    for (struct json_node *one = json_node_first(list); one; one = next) {
        struct json_node *copy;
        next = json_node_next(one);
        if (!json_node_text_is(one, "type", type))
            continue;
        while (!json_node_text_is(old, "type", type))
            old = old->next;
        copy = json_node_copy(&change->scratch, old);
        if (!copy || json_node_insert(list, one, copy) != ST_OK)
            return kube_fail_engine(&change->call->status, ST_NOMEM);
        json_node_remove(list, one);
        old = old->next;
    }
    return true;
}

static bool is_same_condition(const struct json_node *a, const struct json_node *b)
{
    static const char *const members[] = {"type", "status"};
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        const struct json_node *x = json_node_named(a, members[i]);
        const struct json_node *y = json_node_named(b, members[i]);
        if (!x || !y || !json_node_equal(x, y))
            return false;
    }
    return true;
}

/* Null is a time that is not given. */
static bool has_time(const struct json_node *condition, const char *key)
{
    const struct json_node *time = json_node_named(condition, key);
    return time && time->type == JSON_TYPE_STRING;
}

/* A condition that was there before keeps the time of its transition. */
static bool set_transition(const struct kube_meta *meta, const struct json_node *stored,
                           struct json_node *condition, struct slice now)
{
    const struct json_node *old = json_node_items_at(stored, CONDITIONS);
    if (has_time(condition, "lastTransitionTime"))
        return true;
    while (old && !(is_same_condition(old, condition) && has_time(old, "lastTransitionTime")))
        old = old->next;
    const struct json_node *time = old ? json_node_named(old, "lastTransitionTime") : NULL;
    return kube_meta_set_text(meta, condition, "lastTransitionTime", time ? time->text : now);
}

static bool set_times(const struct kube_meta *meta, const struct json_node *stored,
                      struct json_node *object)
{
    struct json_node *list = json_node_path(object, CONDITIONS);
    char now[KUBE_TIME_BYTES];
    kube_time_text(meta->now_s, now);
    if (!list || list->type != JSON_TYPE_ARRAY)
        return true;
    for (struct json_node *one = json_node_first(list); one; one = json_node_next(one)) {
        if (one->type != JSON_TYPE_OBJECT)
            continue;
        if (!has_time(one, "lastUpdateTime") &&
            !kube_meta_set_text(meta, one, "lastUpdateTime", slice_from_text(now)))
            return false;
        if (!set_transition(meta, stored, one, slice_from_text(now)))
            return false;
    }
    return true;
}

/* -- Requests -- */

/* As many as an object of the largest size could have would take seconds to compare. */
enum { CONDITIONS_MAX = 1000 };

static bool check_count(struct kube_change *change, const struct json_node *object)
{
    const struct json_node *list = json_node_path(object, CONDITIONS);
    return !list || list->count <= CONDITIONS_MAX ||
           kube_fail(&change->call->status, KUBE_TOO_LARGE,
                     "Request entity too large: limit of conditions is %d", CONDITIONS_MAX);
}

bool kube_certificate_status(struct kube_change *change, const struct json_node *stored,
                             struct json_node *object)
{
    for (size_t i = 0; i < COUNT_OF(approvals); i++)
        if (!keep_conditions(change, stored, object, approvals[i]))
            return false;
    return check_count(change, object) && set_times(&change->meta, stored, object);
}

bool kube_certificate_approval(struct kube_change *change, const struct json_node *stored,
                               struct json_node *object)
{
    return check_count(change, object) && set_times(&change->meta, stored, object);
}
