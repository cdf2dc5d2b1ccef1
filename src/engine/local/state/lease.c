#include "engine/local/state/lease.h"

#include "base/clock.h"
#include "base/xalloc.h"
#include "store/record/change.h"
#include "store/record/row_values.h"

#include <stdlib.h>

/*
 * Revoking a lease takes a few microseconds of the writer's time. The rest expires with the next
 * groups, between which other requests are served.
 */
enum { EXPIRE_PER_GROUP = 256 };
/* Half of the longest record of the log: a few million keys. */
enum { RECORD_BYTES_MAX = 512 << 20 };
static const int64_t hold_ns = NS_PER_S;

static enum status each_key(void *ctx, int64_t id, uint64_t whose, auth_key_fn visit,
                            void *visit_ctx);

/* -- Life -- */

void local_lease_init(struct local_lease *lease, const struct auth_state *auth, int64_t ttl_min_s,
                      uint64_t seed)
{
    *lease = (struct local_lease){
        .lessor = lessor_new(seed),
        .auth = auth,
        .keys_of = {.ctx = lease, .each_key = each_key},
        .ttl_min_s = ttl_min_s,
        .record_bytes_max = RECORD_BYTES_MAX,
    };
}

void local_lease_fini(struct local_lease *lease)
{
    lessor_free(TAKE(lease->lessor));
    free(TAKE(lease->keys));
    buf_fini(&lease->loaded);
}

void local_lease_publish(struct local_lease *lease)
{
    atomic_store_explicit(&lease->leases, lessor_count(lease->lessor), memory_order_relaxed);
    atomic_store_explicit(&lease->attached, lessor_key_count(lease->lessor), memory_order_relaxed);
}

/* The time of leases, which never goes back. */
static int64_t own_time(struct local_lease *lease, int64_t now_ns)
{
    int64_t own_ns = now_ns - lease->away_ns;
    if (own_ns > lease->now_ns)
        lease->now_ns = own_ns;
    return lease->now_ns;
}

/* Converts a time of the real clock to the time of leases. */
static int64_t own_time_of(int64_t real_ns, int64_t now_ns)
{
    int64_t left_ns = real_ns - clock_real_ns(clock_system());
    return clock_add(now_ns, left_ns > 0 ? left_ns : 0);
}

void local_lease_away(struct local_lease *lease, int64_t from_ns, int64_t now_ns)
{
    int64_t own_ns = from_ns - lease->away_ns;
    if (own_ns < lease->now_ns)
        own_ns = lease->now_ns;
    lease->away_ns = now_ns - own_ns;
}

enum status local_lease_load_row(struct local_lease *lease, const struct row *row)
{
    struct lease_row read;
    TRY(lease_row_read(row, &read));
    if (!row->deleted &&
        (read.id == 0 || read.ttl_s <= 0 || read.ttl_s > LEASE_TTL_MAX_S || read.remaining_s < 0 ||
         read.remaining_s > read.ttl_s || read.until_ns < 0))
        return ST_DAMAGED;
    struct lessor_kept kept = {
        .id = read.id,
        .ttl_s = read.ttl_s,
        .remaining_s = read.remaining_s,
        .fixed = read.until_ns > 0,
        .expires_ns = read.until_ns, /* real clock, until all are loaded */
    };
    return buf_append(&lease->loaded, slice_of(&kept, sizeof(kept)));
}

struct placed {
    struct lessor_kept kept;
    size_t place; /* in the order of the rows: the last row of an id counts */
};

static int compare_placed(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    if (a->kept.id != b->kept.id)
        return a->kept.id < b->kept.id ? -1 : 1;
    return (a->place > b->place) - (a->place < b->place);
}

/* The remaining time of an imported lease is used only at the first start; later starts give it its
 * whole time, as they do for other leases. If that cannot be written, it is used once more. */
static void forget_remaining(struct local_lease *lease, const struct lessor_kept *kept,
                             size_t count)
{
    bool any = false;
    enum status status = ST_OK;
    for (size_t i = 0; i < count && status == ST_OK; i++) {
        if (!kept[i].remaining_s)
            continue;
        struct lease_row whole = {.id = kept[i].id, .ttl_s = kept[i].ttl_s};
        struct row row = lease_row_make(&whole, false);
        status = applier_rows(store_applier(lease->store), &row, 1, NULL, 0, NULL);
        any = true;
    }
    enum status ignored = any ? store_commit(lease->store) : ST_OK;
    (void)ignored; /* after a failed write the log refuses the next one too */
}

/* Sorting millions of rows is much faster than a hash lookup, with a cache miss, for each. */
static void load(struct local_lease *lease, int64_t now_ns)
{
    struct lessor_kept *rows = (struct lessor_kept *)(void *)lease->loaded.ptr;
    size_t row_count = lease->loaded.len / sizeof(*rows), kept_count = 0;
    struct placed *placed = xcalloc(row_count + 1, sizeof(*placed));
    for (size_t i = 0; i < row_count; i++)
        placed[i] = (struct placed){rows[i], i};
    qsort(placed, row_count, sizeof(*placed), compare_placed);
    for (size_t i = 0; i < row_count; i++) {
        bool last = i + 1 == row_count || placed[i + 1].kept.id != placed[i].kept.id;
        if (last && placed[i].kept.ttl_s)
            rows[kept_count++] = placed[i].kept;
    }
    for (size_t i = 0; i < kept_count; i++)
        rows[i].expires_ns = rows[i].fixed ? own_time_of(rows[i].expires_ns, now_ns) : 0;
    lessor_load(lease->lessor, rows, kept_count, now_ns);
    forget_remaining(lease, rows, kept_count);
    free(placed);
    buf_fini(&lease->loaded);
}

static bool lease_exists(void *ctx, int64_t id)
{
    const struct local_lease *lease = ctx;
    return lessor_has(lease->lessor, id);
}

static void lease_moved(void *ctx, struct slice key, int64_t from, int64_t to)
{
    struct local_lease *lease = ctx;
    lessor_move_key(lease->lessor, key, from, to);
}

void local_lease_start(struct local_lease *lease, struct store *store, int64_t now_ns)
{
    lease->store = store;
    lease->now_ns = now_ns;
    load(lease, now_ns);
    if (lessor_count(lease->lessor))
        store_leased_keys(store, lease_moved, lease);
    struct applier *applier = store_applier(store);
    applier->lease_exists = lease_exists;
    applier->lease_moved = lease_moved;
    applier->lease_ctx = lease;
    local_lease_publish(lease);
}

/* -- Permissions -- */

static struct lease_pass *pass_of(struct local_lease *lease, int64_t id)
{
    return &lease->passes[(uint64_t)id % LEASE_PASSES];
}

/*
 * For a user that attaches many keys to one lease, only the keys that were attached after the last
 * check are visited, and always at least one, because the principal may be too old.
 */
static enum status each_key(void *ctx, int64_t id, uint64_t whose, auth_key_fn visit,
                            void *visit_ctx)
{
    struct local_lease *lease = ctx;
    struct lease_pass *pass = pass_of(lease, id);
    struct lessor_lease found;
    if (id == AUTH_ALL_LEASES || !lessor_get(lease->lessor, id, &found))
        return lessor_each_key(lease->lessor, id, UINT32_MAX, visit, visit_ctx);
    uint32_t asked = UINT32_MAX;
    if (pass->id == id && pass->whose == whose && whose)
        asked = found.attached == pass->attached ? 1 : found.attached - pass->attached;
    TRY(lessor_each_key(lease->lessor, id, asked, visit, visit_ctx));
    *pass = (struct lease_pass){.id = id, .whose = whose, .attached = found.attached};
    return ST_OK;
}

/* -- Granting and revoking -- */

static enum status grant(struct local_lease *lease, struct engine_lease *op, int64_t now_ns)
{
    int64_t id = op->id ? op->id : lessor_choose_id(lease->lessor);
    TRY(lessor_check_grant(lease->lessor, id, op->ttl_s));
    int64_t ttl_s = op->ttl_s > lease->ttl_min_s ? op->ttl_s : lease->ttl_min_s;
    struct lease_row kept = {.id = id, .ttl_s = ttl_s, .until_ns = op->until_ns};
    struct row row = lease_row_make(&kept, false);
    TRY(applier_rows(store_applier(lease->store), &row, 1, NULL, 0, NULL));
    if (op->until_ns)
        lessor_grant_until(lease->lessor, id, ttl_s, own_time_of(op->until_ns, now_ns));
    else
        lessor_grant(lease->lessor, id, ttl_s, now_ns);
    local_count(lease->counts, LOCAL_LEASES_GRANTED, 1);
    op->id = id;
    op->ttl_s = ttl_s;
    return ST_OK;
}

static void keys_reserve(struct local_lease *lease, size_t needed)
{
    enum { KEEP = 4096 };
    if (needed <= lease->keys_capacity && (needed > KEEP || lease->keys_capacity <= KEEP))
        return;
    lease->keys_capacity = needed > KEEP ? needed : KEEP;
    lease->keys = xrealloc(lease->keys, lease->keys_capacity * sizeof(*lease->keys));
}

/* The number of keys that one record may delete. */
static size_t keys_of_record(const struct local_lease *lease, const struct slice *keys,
                             size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += change_bytes_max(keys[i].len, 0);
        if (bytes > lease->record_bytes_max && i)
            return i;
    }
    return count;
}

/*
 * One record deletes the lease and all its keys. Only if that is too long there are several, with
 * the lease in the last: otherwise the lease could not expire and would block those after it.
 */
static enum status revoke_now(struct local_lease *lease, int64_t id)
{
    struct applier *applier = store_applier(lease->store);
    struct lessor_lease found;
    if (!lessor_get(lease->lessor, id, &found))
        return ST_LEASE_NOT_FOUND;
    lease->revoking = id;
    keys_reserve(lease, found.key_count);
    lessor_keys(lease->lessor, id, lease->keys);
    lessor_keys_sort(lease->keys, found.key_count);
    const struct slice *keys = lease->keys;
    size_t left = found.key_count, first;
    for (; (first = keys_of_record(lease, keys, left)) < left; keys += first, left -= first)
        TRY(applier_rows(applier, NULL, 0, keys, first, NULL));
    struct row row = lease_row_make(&(struct lease_row){.id = id}, true);
    TRY(applier_rows(applier, &row, 1, keys, left, NULL));
    lessor_revoke(lease->lessor, id);
    if (pass_of(lease, id)->id == id) /* another lease may get this id */
        *pass_of(lease, id) = (struct lease_pass){0};
    local_count(lease->counts, LOCAL_LEASES_REVOKED, 1);
    return ST_OK;
}

static enum status revoke(struct local_lease *lease, int64_t id)
{
    enum status status = revoke_now(lease, id);
    lease->revoking = 0;
    return status;
}

/* -- Renewing -- */

static enum status renew_one(struct local_lease *lease, const struct engine_op *op,
                             struct engine_renewal *item, int64_t asked_ns, int64_t now_ns)
{
    TRY(permission_check_renewal(op, lease->auth->rights, &lease->keys_of, item->id));
    enum status status = lessor_renew(lease->lessor, item->id, asked_ns, now_ns, &item->ttl_s);
    if (status == ST_LEASE_NOT_FOUND)
        item->ttl_s = 0;
    else if (status == ST_OK)
        local_count(lease->counts, LOCAL_LEASES_RENEWED, 1);
    return status == ST_LEASE_NOT_FOUND ? ST_OK : status;
}

/*
 * ST_AGAIN: a lease has expired and must be revoked first. As in etcd, those before one that fails
 * are renewed.
 */
static enum status renew(struct local_lease *lease, struct engine_renewals *op, int64_t now_ns)
{
    int64_t asked_ns = op->asked_ns - lease->away_ns;
    for (; op->answered < op->count; op->answered++)
        TRY(renew_one(lease, &op->op, &op->items[op->answered], asked_ns, now_ns));
    return ST_OK;
}

/* As in etcd, the renewal of an expired lease is answered when the lease is revoked. */
static enum status revoke_expired(struct local_lease *lease, const struct engine_renewals *op)
{
    int64_t asked_ns = op->asked_ns - lease->away_ns;
    for (size_t i = 0; i < op->count; i++) {
        struct lessor_lease found;
        if (!lessor_get(lease->lessor, op->items[i].id, &found) || found.expires_ns > asked_ns)
            continue;
        TRY(revoke(lease, found.id));
        local_count(lease->counts, LOCAL_LEASES_EXPIRED, 1);
    }
    return ST_OK;
}

/* -- Questions -- */

/* A few hundred microseconds. */
enum { SORTED_AT_ONCE = 1024 };

bool local_lease_is_unsorted(const struct engine_op *op)
{
    bool questions = op->kind == ENGINE_LEASE_LIST || op->kind == ENGINE_LEASE_TIME_TO_LIVE;
    return questions && CONTAINER_OF(op, const struct engine_lease, op)->unsorted;
}

static void sort_ids(struct engine_lease *op)
{
    struct lessor_entry *entries = op->unsorted;
    lessor_list_sort(entries, op->id_count);
    op->ids = op->unsorted; /* an id is smaller than an entry, so they fit into the same memory */
    for (size_t i = 0; i < op->id_count; i++)
        op->ids[i] = entries[i].id;
}

void local_lease_sort(struct engine_op *base)
{
    struct engine_lease *op = CONTAINER_OF(base, struct engine_lease, op);
    if (op->unsorted && op->unsorted == op->keys)
        lessor_keys_sort(op->keys, op->key_count);
    else if (op->unsorted)
        sort_ids(op);
    op->unsorted = NULL;
}

static enum status copy_keys(const struct local_lease *lease, struct engine_lease *op,
                             size_t key_count)
{
    struct slice *keys = arena_calloc(op->op.arena, key_count, sizeof(*keys));
    if (!keys)
        return ST_NOMEM;
    lessor_keys(lease->lessor, op->id, keys);
    for (size_t i = 0; i < key_count; i++)
        TRY(arena_dup(op->op.arena, keys[i], &keys[i]));
    op->unsorted = op->keys = keys;
    op->key_count = key_count;
    if (key_count <= SORTED_AT_ONCE)
        local_lease_sort(&op->op);
    return ST_OK;
}

static enum status time_to_live(const struct local_lease *lease, struct engine_lease *op,
                                int64_t now_ns)
{
    struct lessor_lease found;
    op->ttl_s = -1;
    op->granted_ttl_s = 0;
    op->key_count = 0;
    op->unsorted = NULL;
    if (!lessor_get(lease->lessor, op->id, &found))
        return ST_OK;
    op->ttl_s = found.expires_ns > now_ns ? (found.expires_ns - now_ns) / NS_PER_S : 0;
    op->granted_ttl_s = found.ttl_s;
    return op->want_keys ? copy_keys(lease, op, found.key_count) : ST_OK;
}

static enum status list(const struct local_lease *lease, struct engine_lease *op)
{
    struct lessor_entry *entries;
    op->id_count = lessor_count(lease->lessor);
    op->unsorted = entries = arena_alloc(op->op.arena, op->id_count * sizeof(*entries));
    if (!entries && op->id_count)
        return ST_NOMEM;
    lessor_list(lease->lessor, entries);
    if (op->id_count <= SORTED_AT_ONCE)
        local_lease_sort(&op->op);
    return ST_OK;
}

/* -- Operations -- */

size_t local_lease_work(const struct local_lease *lease, const struct engine_op *op)
{
    struct lessor_lease found;
    const struct engine_lease *one = CONTAINER_OF(op, struct engine_lease, op);
    bool checks = !auth_rights_unchecked(lease->auth->rights, &op->principal);
    switch ((enum engine_kind)op->kind) {
    case ENGINE_LEASE_RENEW:
        return CONTAINER_OF(op, struct engine_renewals, op)->count;
    case ENGINE_LEASE_LIST:
        return 1 + lessor_count(lease->lessor) / 4 + (checks ? lessor_key_count(lease->lessor) : 0);
    default:
        return one->want_keys && lessor_get(lease->lessor, one->id, &found) ? 1 + found.key_count
                                                                            : 1;
    }
}

bool local_lease_read(struct local_lease *lease, struct engine_op *op, int64_t now_ns)
{
    op->revision = store_applier(lease->store)->revision;
    now_ns = own_time(lease, now_ns);
    switch ((enum engine_kind)op->kind) {
    case ENGINE_LEASE_TIME_TO_LIVE:
        op->status = time_to_live(lease, CONTAINER_OF(op, struct engine_lease, op), now_ns);
        return true;
    case ENGINE_LEASE_LIST:
        op->status = list(lease, CONTAINER_OF(op, struct engine_lease, op));
        return true;
    case ENGINE_LEASE_RENEW:
        op->status = renew(lease, CONTAINER_OF(op, struct engine_renewals, op), now_ns);
        return op->status != ST_AGAIN;
    default:
        return false;
    }
}

void local_lease_execute(struct local_lease *lease, struct engine_op *op, int64_t now_ns)
{
    struct applier *applier = store_applier(lease->store);
    now_ns = own_time(lease, now_ns);
    switch ((enum engine_kind)op->kind) {
    case ENGINE_LEASE_GRANT:
        op->status = grant(lease, CONTAINER_OF(op, struct engine_lease, op), now_ns);
        break;
    case ENGINE_LEASE_REVOKE:
        op->status = revoke(lease, CONTAINER_OF(op, struct engine_lease, op)->id);
        break;
    case ENGINE_LEASE_RENEW: {
        struct engine_renewals *renewals = CONTAINER_OF(op, struct engine_renewals, op);
        op->revision =
            applier->revision; /* at which the leases existed, so before any is revoked */
        op->status = revoke_expired(lease, renewals);
        if (op->status == ST_OK)
            op->status = renew(lease, renewals, now_ns);
        local_lease_publish(lease);
        return;
    }
    default:
        assert(false && "needs no record");
    }
    op->revision = applier->revision;
    local_lease_publish(lease);
}

/* -- Time -- */

int64_t local_lease_next_ns(const struct local_lease *lease)
{
    int64_t next_ns = clock_add(lessor_next_ns(lease->lessor), lease->away_ns);
    return next_ns > lease->hold_until_ns ? next_ns : lease->hold_until_ns;
}

bool local_lease_is_due(struct local_lease *lease, int64_t now_ns)
{
    return local_lease_next_ns(lease) <= now_ns &&
           lessor_expired(lease->lessor, now_ns - lease->away_ns) != 0;
}

enum status local_lease_expire(struct local_lease *lease, int64_t now_ns, size_t pending_max)
{
    if (local_lease_next_ns(lease) > now_ns)
        return ST_OK;
    int64_t own_ns = now_ns - lease->away_ns;
    enum status status = ST_OK;
    for (unsigned i = 0; i < EXPIRE_PER_GROUP && store_pending_bytes(lease->store) < pending_max;
         i++) {
        int64_t id = lessor_expired(lease->lessor, own_ns);
        if (id == 0)
            break;
        status = revoke(lease, id);
        if (status != ST_OK) {
            local_lease_hold(lease, now_ns);
            break;
        }
        local_count(lease->counts, LOCAL_LEASES_EXPIRED, 1);
    }
    local_lease_publish(lease);
    return status;
}

void local_lease_hold(struct local_lease *lease, int64_t now_ns)
{
    lease->hold_until_ns = now_ns + hold_ns;
}

/* -- Checking -- */

void local_lease_check(const struct local_lease *lease)
{
    lessor_check(lease->lessor);
    assert(lease->leases == lessor_count(lease->lessor));
    assert(lease->revoking == 0);
    assert(!lease->keys == !lease->keys_capacity);
    assert(lease->away_ns >= 0);
    for (size_t i = 0; i < LEASE_PASSES; i++) {
        const struct lease_pass *pass = &lease->passes[i];
        assert(pass->id == 0 || (uint64_t)pass->id % LEASE_PASSES == i);
        assert(pass->id != 0 || (pass->whose == 0 && pass->attached == 0));
    }
}
