#include "leases.h"

#include "actors.h"
#include "codec/pb/rpc.pb.h"
#include "coverage.h"
#include "engine/leases.h"
#include "history.h"
#include "trace.h"

enum { LEASES_MAX = 256 };

struct lease {
    int64_t id, ttl_ns;
    int64_t not_before_ns; /* it does not end before this time */
    int64_t begun_ns;      /* the same without renewals that the server has not begun to execute */
    bool revoking;
    vigil_lease *kept; /* owned; NULL: no client renews it */
};

static struct {
    enum renewals renewals;
    struct lease all[LEASES_MAX];
    unsigned count;
    int64_t granted[LEASES_MAX];
    unsigned granted_count;
} leases;

void leases_begin(enum renewals renewals)
{
    leases.renewals = renewals;
    leases.count = leases.granted_count = 0;
}

static struct lease *find(int64_t id)
{
    for (unsigned i = 0; i < leases.count; i++)
        if (leases.all[i].id == id)
            return &leases.all[i];
    return NULL;
}

void leases_grant(int64_t id, int64_t ttl_s)
{
    assert(leases.count < LEASES_MAX && !find(id));
    int64_t ends_ns = actors_now() + ttl_s * NS_PER_S;
    leases.all[leases.count++] = (struct lease){
        .id = id,
        .ttl_ns = ttl_s * NS_PER_S,
        .not_before_ns = ends_ns,
        .begun_ns = ends_ns,
    };
}

void leases_granted(int64_t id)
{
    leases.granted[leases.granted_count++] = id;
}

void leases_revoke(int64_t id)
{
    find(id)->revoking = true;
}

int64_t leases_at(unsigned number)
{
    return number < leases.granted_count ? leases.granted[number] : 0;
}

unsigned leases_count(void)
{
    return leases.granted_count;
}

bool leases_is_over(int64_t id)
{
    const struct lease *lease = find(id);
    return lease && actors_now() >= lease->not_before_ns;
}

/* -- Renewals -- */

/* A renewal has reached the server. If it came too late, it need not count. */
static void arrived(int64_t id, enum renewals how)
{
    struct lease *lease = find(id);
    if (!lease || leases.renewals != how || actors_now() >= lease->not_before_ns)
        return;
    lease->not_before_ns = actors_now() + lease->ttl_ns;
}

static void begun(int64_t id)
{
    struct lease *lease = find(id);
    if (lease)
        lease->begun_ns = lease->not_before_ns;
}

enum status __real_pb_decode(const struct pb_message *type, struct slice bytes, struct arena *arena,
                             void *ret_struct);
enum status __wrap_pb_decode(const struct pb_message *type, struct slice bytes, struct arena *arena,
                             void *ret_struct);
enum status __wrap_pb_decode(const struct pb_message *type, struct slice bytes, struct arena *arena,
                             void *ret_struct)
{
    enum status status = __real_pb_decode(type, bytes, arena, ret_struct);
    if (type == &pb_lease_keep_alive_request_table && status == ST_OK)
        arrived(((const struct pb_lease_keep_alive_request *)ret_struct)->id, RENEWALS_DECODED);
    return status;
}

void __real_local_lease_renew_start(struct engine_op *op);
void __wrap_local_lease_renew_start(struct engine_op *op);
void __wrap_local_lease_renew_start(struct engine_op *op)
{
    const struct engine_renewals *renewals = CONTAINER_OF(op, struct engine_renewals, op);
    for (size_t i = 0; i < renewals->count; i++) {
        coverage_add(COVERAGE_RENEWAL);
        arrived(renewals->items[i].id, RENEWALS_BEHIND);
        begun(renewals->items[i].id);
    }
    __real_local_lease_renew_start(op);
}

static void on_lost(vigil_lease *kept, const vigil_error *error, void *user)
{
    const struct lease *lease = user;
    (void)kept;
    trace_line("lease %lld is lost: %s", (long long)lease->id, error->text);
    if (error->code == VIGIL_ERROR_LEASE_NOT_FOUND && !lease->revoking &&
        actors_now() < lease->not_before_ns)
        violation("lease %lld does not exist any more, but lasts until %.6f s",
                  (long long)lease->id, (double)lease->not_before_ns / 1e9);
}

void leases_keep(vigil_client *client, int64_t id)
{
    struct lease *lease = find(id);
    if (lease->kept)
        return;
    trace_line("lease %lld is kept", (long long)id);
    int code = vigil_lease_keep(client, id, lease->ttl_ns / NS_PER_S, on_lost, lease, &lease->kept);
    if (code != VIGIL_OK)
        violation("a lease cannot be kept");
}

/* The end of a stream cancels the renewals that wait in it. */
void leases_release(void)
{
    for (unsigned i = 0; i < leases.count; i++) {
        struct lease *lease = &leases.all[i];
        lease->not_before_ns = lease->begun_ns;
        vigil_lease_free(lease->kept);
        lease->kept = NULL;
    }
}
