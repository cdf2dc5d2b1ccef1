#include "kube/policy/admission/amounts/quota.h"

#include "base/buf.h"
#include "kube/policy/admission/amounts/quota_usage.h"
#include "kube/types/storage.h"
#include "kube/types/validate/check.h"

#define PREFIX "/registry/resourcequotas/"

/* -- Size -- */

bool kube_quota_is_sound(const struct json_node *quota)
{
    const struct json_node *spec = json_node_named(quota, "spec");
    const struct json_node *status = json_node_named(quota, "status");
    const struct json_node *selected = json_node_path(spec, "scopeSelector.matchExpressions");
    for (const struct json_node *item = rule_first(selected); item; item = item->next) {
        if (rule_count(json_node_named(item, "values")) > KUBE_QUOTA_SCOPES_MAX)
            return false;
    }
    return rule_count(json_node_named(spec, "hard")) <= KUBE_QUOTA_AMOUNTS_MAX &&
           rule_count(json_node_named(status, "hard")) <= KUBE_QUOTA_AMOUNTS_MAX &&
           rule_count(json_node_named(status, "used")) <= KUBE_QUOTA_AMOUNTS_MAX &&
           rule_count(json_node_named(spec, "scopes")) + rule_count(selected) <=
               KUBE_QUOTA_SCOPES_MAX;
}

/* -- Matching -- */

/* A place for each resource of the quota that objects of this kind can use. */
static enum status places_of(const struct kube_admission_write *write,
                             const struct json_node *quota, struct kube_amounts *ret_amounts)
{
    struct slice names[KUBE_QUOTA_AMOUNTS_MAX];
    size_t count = 0;
    const struct json_node *one = rule_first(json_node_path(quota, "status.hard"));
    for (; one && count < COUNT_OF(names); one = one->next) {
        if (kube_quota_knows(write->kind, one->key))
            names[count++] = one->key;
    }
    return kube_amounts_init(ret_amounts, write->arena, names, count);
}

/* "cpu,memory" */
static enum status write_names(const struct kube_amounts *amounts, struct buf *to)
{
    for (size_t i = 0; i < amounts->count; i++) {
        TRY(buf_append_text(to, i ? "," : ""));
        TRY(buf_append(to, amounts->items[i].name));
    }
    return ST_OK;
}

bool kube_quota_matches(const struct kube_admission_write *write, struct slice name,
                        const struct json_node *quota, bool *ret_matches)
{
    const struct kube_quota_object object = {.kind = write->kind, .object = write->object};
    const struct json_node *used = json_node_path(quota, "status.used");
    struct kube_amounts amounts;
    struct slice missing;
    *ret_matches = false;
    if (places_of(write, quota, &amounts) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    if (!amounts.count ||
        !kube_quota_has_scopes(&object, json_node_named(quota, "spec"), write->arena))
        return !arena_ran_out(write->arena) || kube_fail_engine(write->status, ST_NOMEM);
    if (kube_quota_missing(&object, write->arena, &amounts, &missing) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    /* A quota of computing resources makes its requests and limits mandatory. */
    if (missing.len)
        return kube_admission_forbid(write, "failed quota: %.*s: %.*s", SLICE_ARGS(name),
                                     SLICE_ARGS(missing));
    for (size_t i = 0; i < amounts.count; i++) {
        /* The use of the namespace has not been counted yet, so nothing can be charged. */
        if (!json_node_member(used, amounts.items[i].name)) {
            AUTO(buf_fini) struct buf names = {0};
            if (write_names(&amounts, &names) != ST_OK)
                return kube_fail_engine(write->status, ST_NOMEM);
            return kube_admission_forbid(write, "status unknown for quota: %.*s, resources: %.*s",
                                         SLICE_ARGS(name), SLICE_ARGS(buf_slice(&names)));
        }
    }
    *ret_matches = true;
    return true;
}

/* -- Charging -- */

/* What the write adds. An update of an object that the quota matched before adds the difference. */
static enum status usage_of(const struct kube_admission_write *write, const struct json_node *quota,
                            struct kube_amounts *ret_usage)
{
    const struct kube_quota_object object = {.kind = write->kind, .object = write->object};
    const struct kube_quota_object old = {.kind = write->kind, .object = write->old};
    struct kube_amounts before;
    TRY(places_of(write, quota, ret_usage));
    TRY(kube_quota_usage(&object, write->arena, ret_usage));
    if (!write->old || !kube_quota_has_scopes(&old, json_node_named(quota, "spec"), write->arena))
        return ST_OK;
    TRY(kube_amounts_same(&before, write->arena, ret_usage));
    TRY(kube_quota_usage(&old, write->arena, &before));
    for (size_t i = 0; i < before.count; i++) {
        if (before.items[i].known && ret_usage->items[i].known)
            quantity_subtract(&ret_usage->items[i].value, &before.items[i].value);
    }
    return ST_OK;
}

static bool is_charged(const struct kube_amount *amount)
{
    return amount->known && amount->value.amount;
}

static struct quantity sum_of(const struct kube_amount *amount, const struct json_node *used)
{
    struct kube_amount sum = {.known = true, .value = kube_amount_read(used)};
    kube_amount_add(&sum, &amount->value);
    return sum.value;
}

static bool is_exceeded(const struct kube_amount *amount, const struct json_node *status)
{
    const struct json_node *used = json_node_member(json_node_named(status, "used"), amount->name);
    struct quantity sum = sum_of(amount, used);
    struct quantity hard =
        kube_amount_read(json_node_member(json_node_named(status, "hard"), amount->name));
    return is_charged(amount) && quantity_compare(&sum, &hard) > 0;
}

/* "cpu=1,memory=2Gi" of the resources that are exceeded; list NULL: the usage itself. */
static enum status write_exceeded(const struct kube_amounts *usage, const struct json_node *status,
                                  const char *list, struct buf *to)
{
    char room[QUANTITY_BYTES];
    bool first = true;
    for (size_t i = 0; i < usage->count; i++) {
        const struct kube_amount *amount = &usage->items[i];
        if (!is_exceeded(amount, status))
            continue;
        const struct json_node *node =
            list ? json_node_member(json_node_named(status, list), amount->name) : NULL;
        struct slice text =
            node ? kube_amount_text(node, room) : quantity_write(&amount->value, room);
        TRY(buf_append_format(to, "%s%.*s=%.*s", first ? "" : ",", SLICE_ARGS(amount->name),
                              SLICE_ARGS(text)));
        first = false;
    }
    return ST_OK;
}

static bool fail_exceeded(const struct kube_admission_write *write, struct slice name,
                          const struct kube_amounts *usage, const struct json_node *status)
{
    AUTO(buf_fini) struct buf requested = {0}, used = {0}, hard = {0};
    if (write_exceeded(usage, status, NULL, &requested) != ST_OK ||
        write_exceeded(usage, status, "used", &used) != ST_OK ||
        write_exceeded(usage, status, "hard", &hard) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    return kube_admission_forbid(write,
                                 "exceeded quota: %.*s, requested: %.*s, used: %.*s, limited: %.*s",
                                 SLICE_ARGS(name), SLICE_ARGS(buf_slice(&requested)),
                                 SLICE_ARGS(buf_slice(&used)), SLICE_ARGS(buf_slice(&hard)));
}

static enum status add_usage(const struct kube_admission_write *write,
                             const struct kube_amounts *usage, const struct json_node *quota,
                             struct json_node **ret_charged)
{
    char room[QUANTITY_BYTES];
    struct json_node *copy = json_node_copy(write->arena, quota);
    struct json_node *used = json_node_path(copy, "status.used");
    if (!copy || !used)
        return ST_NOMEM;
    for (size_t i = 0; i < usage->count; i++) {
        const struct kube_amount *amount = &usage->items[i];
        if (!is_charged(amount))
            continue;
        struct quantity sum = sum_of(amount, json_node_member(used, amount->name));
        struct json_node *text = json_node_new_text(write->arena, quantity_write(&sum, room));
        if (!text)
            return ST_NOMEM;
        TRY(json_node_set(write->arena, used, amount->name, text));
    }
    *ret_charged = copy;
    return ST_OK;
}

bool kube_quota_charge(const struct kube_admission_write *write, struct slice name,
                       const struct json_node *quota, struct json_node **ret_charged)
{
    const struct json_node *status = json_node_named(quota, "status");
    struct kube_amounts usage;
    bool charged = false, exceeded = false;
    *ret_charged = NULL;
    if (usage_of(write, quota, &usage) != ST_OK || arena_ran_out(write->arena))
        return kube_fail_engine(write->status, ST_NOMEM);
    for (size_t i = 0; i < usage.count; i++) {
        charged = charged || is_charged(&usage.items[i]);
        exceeded = exceeded || is_exceeded(&usage.items[i], status);
    }
    if (!charged)
        return true;
    /* What a controller has allocated already is counted, even if it is too much. */
    if (exceeded && !slice_is(write->subresource, "status"))
        return fail_exceeded(write, name, &usage, status);
    return add_usage(write, &usage, quota, ret_charged) == ST_OK ||
           kube_fail_engine(write->status, ST_NOMEM);
}

/* -- The plugin -- */

/* A quota that could not be kept in memory could not be enforced. */
static bool check_size(const struct kube_admission_write *write)
{
    AUTO(buf_fini) struct buf text = {0};
    if (!kube_kind_is(write->kind, "", "resourcequotas"))
        return true;
    if (json_tree_write(write->object, &text) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    if (!kube_quota_is_sound(write->object) || text.len > KUBE_LOOKUP_OBJECT_BYTES_MAX / 2)
        return kube_admission_forbid(write,
                                     "at most %d resources and %d scopes of a quota, and %d KiB "
                                     "in total, can be enforced",
                                     KUBE_QUOTA_AMOUNTS_MAX, KUBE_QUOTA_SCOPES_MAX,
                                     KUBE_LOOKUP_OBJECT_BYTES_MAX / 2 / 1024);
    return true;
}

/* The text takes less memory than the tree. */
static const void *read_quota(struct arena *arena, const struct json_node *object)
{
    AUTO(buf_fini) struct buf text = {0};
    struct slice *copy = arena_alloc(arena, sizeof(*copy));
    if (!copy || json_tree_write(object, &text) != ST_OK ||
        arena_dup(arena, buf_slice(&text), copy) != ST_OK)
        return NULL;
    return copy;
}

const struct kube_fact_row kube_resource_quotas = {
    .kind = {.prefix = PREFIX, .namespaced = true, .read = read_quota},
    .all = true,
};

struct quota {
    const struct kube_lookup_object *stored;
    struct json_node *tree;
};

static bool read_stored(const struct kube_admission_write *write,
                        const struct kube_lookup_object *stored, struct quota *ret_quota)
{
    const struct slice *text = stored->data;
    struct error error;
    enum status status = json_tree_read(write->arena, *text, &ret_quota->tree, &error);
    ret_quota->stored = stored;
    if (status == ST_NOMEM)
        return kube_fail_engine(write->status, ST_NOMEM);
    if (status != ST_OK || !kube_quota_is_sound(ret_quota->tree))
        return kube_admission_forbid(write, "quota %.*s is too large to be enforced",
                                     SLICE_ARGS(stored->name));
    return true;
}

/* Those that the object matches, at most all. False: it is refused. */
static bool find_quotas(const struct kube_admission_write *write, struct quota *ret_quotas,
                        size_t *ret_count)
{
    const struct kube_fact_objects *facts = &write->facts->of[KUBE_FACT_QUOTAS];
    *ret_count = 0;
    if (facts->incomplete)
        return kube_admission_forbid(write, "there are more quotas than can be enforced");
    for (size_t i = 0; i < facts->count; i++) {
        struct quota *quota = &ret_quotas[*ret_count];
        bool matches;
        if (!read_stored(write, facts->all[i], quota) ||
            !kube_quota_matches(write, quota->stored->name, quota->tree, &matches))
            return false;
        *ret_count += matches;
    }
    return true;
}

static bool add_companion(struct kube_admission_write *write, const struct quota *quota,
                          const struct json_node *charged)
{
    AUTO(buf_fini) struct buf text = {0};
    struct kube_companion companion = {.expected = quota->stored->revision};
    if (json_tree_write(charged, &text) != ST_OK ||
        arena_dup(write->arena, buf_slice(&text), &companion.value) != ST_OK ||
        kube_key_make(write->arena, PREFIX, write->namespace, quota->stored->name,
                      &companion.key) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    if (write->companion_count == KUBE_ADMISSION_COMPANIONS_MAX)
        return kube_admission_forbid(write, "at most %d quotas can be charged by one write",
                                     KUBE_ADMISSION_COMPANIONS_MAX);
    if (!write->companions)
        write->companions =
            arena_calloc(write->arena, KUBE_ADMISSION_COMPANIONS_MAX, sizeof(*write->companions));
    if (!write->companions)
        return kube_fail_engine(write->status, ST_NOMEM);
    write->companions[write->companion_count++] = companion;
    return true;
}

static bool charge(struct kube_admission_write *write)
{
    const struct kube_fact_objects *facts = &write->facts->of[KUBE_FACT_QUOTAS];
    struct quota *quotas;
    size_t count;
    if (!check_size(write))
        return false;
    if ((!facts->count && !facts->incomplete) ||
        !kube_quota_applies(write->kind, write->subresource, write->object, write->old))
        return true;
    quotas = arena_calloc(write->arena, facts->count + 1, sizeof(*quotas));
    if (!quotas)
        return kube_fail_engine(write->status, ST_NOMEM);
    if (!find_quotas(write, quotas, &count))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct json_node *charged;
        if (!kube_quota_charge(write, quotas[i].stored->name, quotas[i].tree, &charged) ||
            (charged && !add_companion(write, &quotas[i], charged)))
            return false;
    }
    return true;
}

const struct kube_admission_plugin kube_resource_quota = {
    .name = "ResourceQuota",
    .needs = 1u << KUBE_FACT_QUOTAS,
    .rules = {{NULL, NULL, "", KUBE_ON_CREATE},
              {"", "resourcequotas", "", KUBE_ON_UPDATE},
              {"", "pods", "", KUBE_ON_UPDATE},
              {"", "pods", "resize", KUBE_ON_UPDATE},
              {"", "persistentvolumeclaims", "", KUBE_ON_UPDATE},
              {"", "persistentvolumeclaims", "status", KUBE_ON_UPDATE},
              {"", "services", "", KUBE_ON_UPDATE}},
    .concerns = kube_quota_concerns,
    .charge = charge,
};
