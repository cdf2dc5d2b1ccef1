#include "plants.h"

#include "actors.h"
#include "codec/pb/rpc.pb.h"
#include "engine/local/state/auth.h"
#include "engine/local/state/lease.h"
#include "engine/permission.h"
#include "kubeclient/informer/cache.h"
#include "lease/lessor.h"
#include "store/log/format.h"
#include "store/mvcc/applier.h"
#include "store/mvcc/range.h"
#include "watch/index/watcher.h"
#include "watch/stream/output.h"

#include <string.h>

enum plant plant_now;

static const struct {
    const char *name, *what, *fault;
} plants[PLANTS] = {{"none", "nothing", "none"},
#define PLANT_ROW(id, name, what, fault) {name, what, fault},
                    PLANTS_TABLE(PLANT_ROW)
#undef PLANT_ROW
};

bool plant_chance(enum plant plant, unsigned n)
{
    return plant_is(plant) && random_below(actors_random(), n) == 0;
}

enum plant plant_named(const char *name)
{
    enum plant plant = PLANT_NONE;
    while (plant < PLANTS && strcmp(plants[plant].name, name) != 0)
        plant++;
    return plant;
}

const char *plant_name(enum plant plant)
{
    return plants[plant].name;
}

const char *plant_what(enum plant plant)
{
    return plants[plant].what;
}

const char *plant_fault(enum plant plant)
{
    return plants[plant].fault;
}

bool plant_is_of_front(enum plant plant)
{
    return strncmp(plant_name(plant), "front-", 6) == 0;
}

bool plant_is_of_tier(enum plant plant)
{
    return strncmp(plant_name(plant), "tier-", 5) == 0;
}

/* -- The log -- */

enum record_found __real_record_check(struct slice bytes, uint32_t salt,
                                      struct record_head *ret_head);
enum record_found __wrap_record_check(struct slice bytes, uint32_t salt,
                                      struct record_head *ret_head);
enum record_found __wrap_record_check(struct slice bytes, uint32_t salt,
                                      struct record_head *ret_head)
{
    enum record_found found = __real_record_check(bytes, salt, ret_head);
    if (plant_is(PLANT_TORN_RECORD) && found == RECORD_BAD &&
        record_head_check(bytes, salt, ret_head))
        return RECORD_GOOD;
    if (plant_is(PLANT_EXCHANGED) && found == RECORD_BAD &&
        record_head_check(bytes, salt, ret_head) &&
        !plant_has_hole(bytes.ptr + RECORD_HEAD_BYTES, ret_head->len - RECORD_HEAD_BYTES))
        return RECORD_GOOD;
    return found;
}

bool __real_log_is_short(const struct log *log);
bool __wrap_log_is_short(const struct log *log);
bool __wrap_log_is_short(const struct log *log)
{
    return !plant_is(PLANT_FULL_IGNORED) && __real_log_is_short(log);
}

/* -- Restarts -- */

enum status __real_local_lease_load_row(struct local_lease *lease, const struct row *row);
enum status __wrap_local_lease_load_row(struct local_lease *lease, const struct row *row);
enum status __wrap_local_lease_load_row(struct local_lease *lease, const struct row *row)
{
    return plant_is(PLANT_LEASES_LOST) ? ST_OK : __real_local_lease_load_row(lease, row);
}

enum status __real_local_auth_load_row(struct local_auth *auth, const struct row *row);
enum status __wrap_local_auth_load_row(struct local_auth *auth, const struct row *row);
enum status __wrap_local_auth_load_row(struct local_auth *auth, const struct row *row)
{
    return plant_is(PLANT_AUTH_LOST) ? ST_OK : __real_local_auth_load_row(auth, row);
}

/* -- Watches -- */

void __real_catch_up_begin(struct watcher *watcher);
void __wrap_catch_up_begin(struct watcher *watcher);
void __wrap_catch_up_begin(struct watcher *watcher)
{
    if (plant_is(PLANT_WATCH_GAP) && watcher->from > 1)
        watcher->from++;
    if (plant_is(PLANT_WATCH_EARLY) && watcher->from > 2)
        watcher->from--;
    __real_catch_up_begin(watcher);
}

/* -- Leases -- */

/* How much too early they end. */
static int64_t hurry_ns(void)
{
    struct clock *clock = clock_system();
    static const int64_t offset_ns = INT64_C(1700000000) * NS_PER_S; /* SIM_OPTIONS_DEFAULT */
    if (plant_is(PLANT_LEASE_EARLY))
        return NS_PER_S / 2;
    if (plant_is(PLANT_WALL_CLOCK))
        return clock_real_ns(clock) - clock_mono_ns(clock) - offset_ns;
    return 0;
}

int64_t __real_lessor_next_ns(const struct lessor *lessor);
int64_t __wrap_lessor_next_ns(const struct lessor *lessor);
int64_t __wrap_lessor_next_ns(const struct lessor *lessor)
{
    int64_t next = __real_lessor_next_ns(lessor);
    return next == CLOCK_NEVER ? next : next - hurry_ns();
}

int64_t __real_lessor_expired(struct lessor *lessor, int64_t now_ns);
int64_t __wrap_lessor_expired(struct lessor *lessor, int64_t now_ns);
int64_t __wrap_lessor_expired(struct lessor *lessor, int64_t now_ns)
{
    return __real_lessor_expired(lessor, now_ns + hurry_ns());
}

/* -- Requests -- */

enum status __real_applier_put(struct applier *applier, const struct pb_put_request *request,
                               struct arena *arena, struct kv_answer *ret_answer);
enum status __wrap_applier_put(struct applier *applier, const struct pb_put_request *request,
                               struct arena *arena, struct kv_answer *ret_answer);
enum status __wrap_applier_put(struct applier *applier, const struct pb_put_request *request,
                               struct arena *arena, struct kv_answer *ret_answer)
{
    struct pb_put_request changed = *request;
    if (plant_chance(PLANT_WRONG_PREVIOUS, 10))
        changed.prev_kv = false;
    if (plant_chance(PLANT_DOUBLE_APPLY, 50))
        TRY(__real_applier_put(applier, &changed, arena, ret_answer));
    enum status status = __real_applier_put(
        applier, plant_is(PLANT_WRONG_PREVIOUS) ? &changed : request, arena, ret_answer);
    if (!plant_is(PLANT_FULL_IGNORED) || status != ST_DISK_FULL)
        return status;
    *ret_answer = (struct kv_answer){.revision = applier->revision};
    return ST_OK;
}

enum status __real_applier_txn(struct applier *applier, const struct pb_txn_request *request,
                               struct arena *arena, struct kv_answer *ret_answer);
enum status __wrap_applier_txn(struct applier *applier, const struct pb_txn_request *request,
                               struct arena *arena, struct kv_answer *ret_answer);
enum status __wrap_applier_txn(struct applier *applier, const struct pb_txn_request *request,
                               struct arena *arena, struct kv_answer *ret_answer)
{
    if (!plant_chance(PLANT_NO_COMPARE, 10))
        return __real_applier_txn(applier, request, arena, ret_answer);
    struct pb_txn_request *changed = arena_alloc(arena, sizeof(*changed));
    if (!changed)
        return ST_NOMEM;
    *changed = *request;
    changed->compare_count = 0;
    return __real_applier_txn(applier, changed, arena, ret_answer);
}

enum status __real_applier_compact(struct applier *applier, int64_t revision);
enum status __wrap_applier_compact(struct applier *applier, int64_t revision);
enum status __wrap_applier_compact(struct applier *applier, int64_t revision)
{
    bool far = plant_is(PLANT_COMPACT_FAR) && revision < applier->revision;
    return __real_applier_compact(applier, revision + far);
}

enum status __real_range_begin(struct range *range, const struct range_state *state,
                               const struct pb_range_request *request);
enum status __wrap_range_begin(struct range *range, const struct range_state *state,
                               const struct pb_range_request *request);
enum status __wrap_range_begin(struct range *range, const struct range_state *state,
                               const struct pb_range_request *request)
{
    struct range_state older = *state;
    bool stale = state->revision > 2 && plant_chance(PLANT_STALE_READ, 10);
    older.revision -= stale;
    return __real_range_begin(range, &older, request);
}

/* -- Informers -- */

enum status __real_cache_remove(struct cache *cache, const struct vigil_kube_object *object);
enum status __wrap_cache_remove(struct cache *cache, const struct vigil_kube_object *object);
enum status __wrap_cache_remove(struct cache *cache, const struct vigil_kube_object *object)
{
    return plant_chance(PLANT_INFORMER, 4) ? ST_OK : __real_cache_remove(cache, object);
}

/* -- Users -- */

enum status __real_permission_check_user(const struct engine_op *op,
                                         const struct auth_rights *rights,
                                         const struct auth_leases *leases);
enum status __wrap_permission_check_user(const struct engine_op *op,
                                         const struct auth_rights *rights,
                                         const struct auth_leases *leases);
enum status __wrap_permission_check_user(const struct engine_op *op,
                                         const struct auth_rights *rights,
                                         const struct auth_leases *leases)
{
    return plant_is(PLANT_NO_PERMISSION) ? ST_OK : __real_permission_check_user(op, rights, leases);
}
