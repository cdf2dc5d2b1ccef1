#include "kube/policy/admission/amounts/quota_count.h"

#include "kube/policy/admission/amounts/quota.h"
#include "kube/types/validate/check.h"

enum status kube_quota_count_init(struct kube_quota_count *count, struct arena *arena,
                                  const struct json_node *quota)
{
    struct slice names[KUBE_QUOTA_AMOUNTS_MAX];
    size_t found = 0;
    *count = (struct kube_quota_count){.quota = quota};
    const struct json_node *one = rule_first(json_node_path(count->quota, "spec.hard"));
    for (; one && found < COUNT_OF(names); one = one->next)
        names[found++] = one->key;
    return kube_amounts_init(&count->used, arena, names, found);
}

bool kube_quota_count_concerns(const struct kube_quota_count *count, const struct kube_kind *kind)
{
    for (size_t i = 0; i < count->used.count; i++) {
        if (kube_quota_knows(kind, count->used.items[i].name))
            return true;
    }
    return false;
}

static bool is_scoped(const struct kube_quota_count *count)
{
    const struct json_node *spec = json_node_named(count->quota, "spec");
    return rule_count(json_node_named(spec, "scopes")) ||
           rule_count(json_node_path(spec, "scopeSelector.matchExpressions"));
}

enum status kube_quota_count_kind(struct kube_quota_count *count, struct arena *arena,
                                  const struct kube_kind *kind, enum kube_quota_need *ret_need)
{
    struct slice names[KUBE_QUOTA_AMOUNTS_MAX];
    size_t found = 0;
    bool scoped = is_scoped(count), numbers = !scoped;
    for (size_t i = 0; i < count->used.count; i++) {
        struct kube_amount *amount = &count->used.items[i];
        if (!kube_quota_knows(kind, amount->name))
            continue;
        amount->known = true; /* and 0, if there are no objects */
        names[found++] = amount->name;
        numbers = numbers && kube_quota_is_number(kind, amount->name);
    }
    TRY(kube_amounts_init(&count->of_kind, arena, names, found));
    if (!found || (scoped && !kube_quota_has_scopes_for(kind)))
        *ret_need = KUBE_QUOTA_NOTHING;
    else
        *ret_need = numbers ? KUBE_QUOTA_NUMBER : KUBE_QUOTA_OBJECTS;
    return ST_OK;
}

enum status kube_quota_count_object(struct kube_quota_count *count, struct arena *scratch,
                                    const struct kube_quota_object *object)
{
    const struct json_node *spec = json_node_named(count->quota, "spec");
    struct kube_amounts usage;
    if (!count->of_kind.count)
        return ST_OK;
    if (!kube_quota_has_scopes(object, spec, scratch))
        return arena_ran_out(scratch) ? ST_NOMEM : ST_OK;
    TRY(kube_amounts_same(&usage, scratch, &count->of_kind));
    TRY(kube_quota_usage(object, scratch, &usage));
    for (size_t i = 0; i < usage.count; i++) {
        if (usage.items[i].known)
            kube_amount_add(kube_amounts_find(&count->used, usage.items[i].name),
                            &usage.items[i].value);
    }
    return arena_ran_out(scratch) ? ST_NOMEM : ST_OK;
}

void kube_quota_count_number(struct kube_quota_count *count, uint64_t number)
{
    const struct quantity value = {.amount = number};
    if (is_scoped(count))
        return;
    for (size_t i = 0; i < count->of_kind.count; i++)
        kube_amount_add(kube_amounts_find(&count->used, count->of_kind.items[i].name), &value);
}

/* -- The status -- */

static bool is_equal(const struct json_node *node, const struct quantity *value)
{
    struct quantity old = kube_amount_read(node);
    return node && quantity_compare(&old, value) == 0;
}

static bool has_hard(const struct kube_quota_count *count)
{
    const struct json_node *hard = json_node_path(count->quota, "status.hard");
    const struct json_node *wanted = json_node_path(count->quota, "spec.hard");
    for (const struct json_node *one = rule_first(wanted); one; one = one->next) {
        struct quantity value = kube_amount_read(one);
        if (!is_equal(json_node_member(hard, one->key), &value))
            return false;
    }
    return rule_count(hard) == rule_count(wanted);
}

enum status kube_quota_count_status(const struct kube_quota_count *count, struct arena *arena,
                                    struct json_node **ret_status)
{
    const struct json_node *old = json_node_path(count->quota, "status.used");
    struct json_node *status = json_node_new(arena, JSON_TYPE_OBJECT);
    struct json_node *used = json_node_new(arena, JSON_TYPE_OBJECT), *hard = NULL;
    bool differs = !has_hard(count);
    if (json_node_path(count->quota, "spec.hard"))
        hard = json_node_copy(arena, json_node_path(count->quota, "spec.hard"));
    else
        hard = json_node_new(arena, JSON_TYPE_OBJECT);
    if (!status || !used || !hard)
        return ST_NOMEM;
    for (size_t i = 0; i < count->used.count; i++) {
        const struct kube_amount *amount = &count->used.items[i];
        const struct json_node *before = json_node_member(old, amount->name);
        char room[QUANTITY_BYTES];
        if (!amount->known && !before)
            continue;
        differs = differs || (amount->known && !is_equal(before, &amount->value));
        struct slice text =
            amount->known ? quantity_write(&amount->value, room) : kube_amount_text(before, room);
        struct json_node *node = json_node_new_text(arena, text);
        if (!node)
            return ST_NOMEM;
        TRY(json_node_set(arena, used, amount->name, node));
    }
    differs = differs || rule_count(used) != rule_count(old);
    TRY(json_node_set(arena, status, SLICE_LITERAL("hard"), hard));
    TRY(json_node_set(arena, status, SLICE_LITERAL("used"), used));
    *ret_status = differs ? status : NULL;
    return ST_OK;
}
