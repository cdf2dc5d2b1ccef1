#include "fake/lease.h"

#include "base/clock.h"
#include "base/xalloc.h"
#include "lease/lessor.h"

#include <stdlib.h>

enum { TTL_MIN_S = 2 };

struct fake_lease {
    struct fake_model *model;
    struct lessor *lessor; /* ids and times; the model knows the attached keys */
};

static bool exists(void *ctx, int64_t id)
{
    const struct fake_lease *lease = ctx;
    return lessor_has(lease->lessor, id);
}

struct fake_lease *fake_lease_new(struct fake_model *model, uint64_t seed)
{
    struct fake_lease *lease = xcalloc(1, sizeof(*lease));
    lease->model = model;
    lease->lessor = lessor_new(seed);
    fake_model_set_leases(model, exists, lease);
    return lease;
}

void fake_lease_free(struct fake_lease *lease)
{
    lessor_free(lease->lessor);
    free(lease);
}

static enum status grant(struct fake_lease *lease, struct engine_lease *op, int64_t now_ns)
{
    op->id = op->id ? op->id : lessor_choose_id(lease->lessor);
    TRY(lessor_check_grant(lease->lessor, op->id, op->ttl_s));
    op->ttl_s = op->ttl_s > TTL_MIN_S ? op->ttl_s : TTL_MIN_S;
    lessor_grant(lease->lessor, op->id, op->ttl_s, now_ns);
    return ST_OK;
}

static enum status revoke(struct fake_lease *lease, int64_t id)
{
    if (!lessor_has(lease->lessor, id))
        return ST_LEASE_NOT_FOUND;
    fake_model_delete_leased(lease->model, id);
    lessor_revoke(lease->lessor, id);
    return ST_OK;
}

static enum status time_to_live(struct fake_lease *lease, struct engine_lease *op, int64_t now_ns)
{
    struct lessor_lease found;
    op->ttl_s = -1;
    op->granted_ttl_s = 0;
    op->key_count = 0;
    if (!lessor_get(lease->lessor, op->id, &found))
        return ST_OK;
    op->ttl_s = (found.expires_ns - now_ns) / NS_PER_S;
    op->granted_ttl_s = found.ttl_s;
    if (!op->want_keys)
        return ST_OK;
    struct slice *keys;
    op->key_count = fake_model_leased(lease->model, op->id, op->op.arena, &keys);
    op->keys = keys;
    return ST_OK;
}

static enum status list(struct fake_lease *lease, struct engine_lease *op)
{
    op->id_count = lessor_count(lease->lessor);
    op->ids = arena_calloc(op->op.arena, op->id_count, sizeof(*op->ids));
    struct lessor_entry *entries = xcalloc(op->id_count + 1, sizeof(*entries));
    lessor_list(lease->lessor, entries);
    lessor_list_sort(entries, op->id_count);
    for (size_t i = 0; op->ids && i < op->id_count; i++)
        op->ids[i] = entries[i].id;
    free(entries);
    return op->ids ? ST_OK : ST_NOMEM;
}

static enum status each_key_of(struct fake_lease *lease, int64_t id, auth_key_fn visit,
                               void *visit_ctx)
{
    struct arena arena;
    struct slice *keys;
    enum status status = ST_OK;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    size_t count = fake_model_leased(lease->model, id, &arena, &keys);
    for (size_t i = 0; i < count && status == ST_OK; i++)
        status = visit(visit_ctx, keys[i]);
    arena_fini(&arena);
    return status;
}

static enum status each_key(void *ctx, int64_t id, uint64_t whose, auth_key_fn visit,
                            void *visit_ctx)
{
    struct fake_lease *lease = ctx;
    (void)whose; /* no checks are cached */
    if (id != AUTH_ALL_LEASES)
        return each_key_of(lease, id, visit, visit_ctx);
    size_t count = lessor_count(lease->lessor);
    struct lessor_entry *entries = xcalloc(count + 1, sizeof(*entries));
    lessor_list(lease->lessor, entries);
    enum status status = ST_OK;
    for (size_t i = 0; i < count && status == ST_OK; i++)
        status = each_key_of(lease, entries[i].id, visit, visit_ctx);
    free(entries);
    return status;
}

struct auth_leases fake_lease_keys(struct fake_lease *lease)
{
    return (struct auth_leases){.ctx = lease, .each_key = each_key};
}

static enum status renew(struct fake_lease *lease, struct engine_renewals *op,
                         const struct auth_rights *rights, int64_t now_ns)
{
    struct auth_leases keys = fake_lease_keys(lease);
    for (; op->answered < op->count; op->answered++) {
        struct engine_renewal *item = &op->items[op->answered];
        TRY(permission_check_renewal(&op->op, rights, &keys, item->id));
        if (lessor_renew(lease->lessor, item->id, now_ns, now_ns, &item->ttl_s) != ST_OK)
            item->ttl_s = 0;
    }
    return ST_OK;
}

enum status fake_lease_run(struct fake_lease *lease, struct engine_op *op,
                           const struct auth_rights *rights, int64_t now_ns)
{
    struct engine_lease *one = CONTAINER_OF(op, struct engine_lease, op);
    switch ((enum engine_kind)op->kind) {
    case ENGINE_LEASE_GRANT:
        return grant(lease, one, now_ns);
    case ENGINE_LEASE_REVOKE:
        return revoke(lease, one->id);
    case ENGINE_LEASE_TIME_TO_LIVE:
        return time_to_live(lease, one, now_ns);
    case ENGINE_LEASE_LIST:
        return list(lease, one);
    case ENGINE_LEASE_RENEW:
        return renew(lease, CONTAINER_OF(op, struct engine_renewals, op), rights, now_ns);
    default:
        return ST_INTERNAL;
    }
}
